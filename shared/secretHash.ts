import { createHash } from 'node:crypto'

/**
 * Returns the stored form of a secret of 256 random bits, which is its SHA-256. A slow hash would add nothing, because
 * nobody can guess a secret of 256 random bits.
 */
export const hashSecret = (secret: string): Buffer => createHash('sha256').update(secret).digest()
