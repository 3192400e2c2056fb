import { createHash } from 'node:crypto'

/**
 * Returns the hash of a calendar UID (RFC 5545 §3.8.4.7). The database indexes this hash, because an index entry has a
 * maximum size and a UID has none.
 */
export const uidHash = (uid: string): Buffer => createHash('sha256').update(uid).digest()
