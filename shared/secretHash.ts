import { createHash } from 'node:crypto'

/**
 * Returns the SHA-256 of a secret that holds 256 random bits. The database stores this hash instead of the secret. A
 * slow hash would add no security, because nobody can guess 256 random bits.
 */
export const hashSecret = (secret: string): Buffer => createHash('sha256').update(secret).digest()
