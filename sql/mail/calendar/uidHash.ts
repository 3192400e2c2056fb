import { createHash } from 'node:crypto'

/** Returns the key of a UID (RFC 5545 §3.8.4.7), because the size of an index entry is limited. */
export const uidHash = (uid: string): Buffer => createHash('sha256').update(uid).digest()
