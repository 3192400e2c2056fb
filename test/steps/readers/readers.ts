import { DOCUMENT_READERS } from './mail/documentReaders.ts'
import { MAIL_HTTP_READERS } from './mail/mailHttpReaders.ts'
import { MAIL_READERS } from './mail/mailReaders.ts'
import { MAIL_TEXT_READERS } from './mail/mailTextReaders.ts'
import { REVIEW_READERS } from './mail/reviewReaders.ts'
import { OAUTH_READERS } from './oauthReaders.ts'
import { PURSE_READERS } from './purseReaders.ts'
import type { Reader } from './reader.ts'
import { REQUEST_READERS } from './requestReaders.ts'
import { TILL_READERS } from './tillReaders.ts'
import { VAULT_READERS } from './vaultReaders.ts'

/** Lists every function that reads untrusted text, so that the tests count the steps of each of them. */
export const READERS: readonly Reader[] = [
  ...MAIL_READERS,
  ...MAIL_HTTP_READERS,
  ...MAIL_TEXT_READERS,
  ...DOCUMENT_READERS,
  ...REVIEW_READERS,
  ...VAULT_READERS,
  ...TILL_READERS,
  ...REQUEST_READERS,
  ...OAUTH_READERS,
  ...PURSE_READERS,
]
