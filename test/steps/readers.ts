import { MAIL_READERS } from './mailReaders.ts'
import type { Reader } from './reader.ts'

export const READERS: readonly Reader[] = [...MAIL_READERS]
