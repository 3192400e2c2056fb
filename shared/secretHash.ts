import { createHash } from 'node:crypto'

/**
 * Returns the stored form, the SHA-256, of a secret of 256 random bits. A slow hash would add nothing, because nobody
 * can guess a secret of 256 random bits.
 */
export const hashSecret = (secret: string): Buffer => createHash('sha256').update(secret).digest()
