import { MAIL_READERS } from './mailReaders.ts'
import type { Reader } from './reader.ts'
import { VAULT_READERS } from './vaultReaders.ts'

/** Every function that reads what a stranger wrote. */
export const READERS: readonly Reader[] = [...MAIL_READERS, ...VAULT_READERS]
