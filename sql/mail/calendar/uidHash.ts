import { createHash } from 'node:crypto'

/** The key of a UID (RFC 5545 §3.8.4.7): an index entry has a bounded size. */
export const uidHash = (uid: string): Buffer => createHash('sha256').update(uid).digest()
