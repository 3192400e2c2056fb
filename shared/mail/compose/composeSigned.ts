import { composeMail, type MailContent } from './composeMail.ts'
import { type DkimSigner, dkimSign } from './dkim.ts'

/**
 * Composes a message and adds its DKIM signatures. Each call returns different bytes, because the MIME boundaries and
 * the signatures differ.
 */
export const composeSigned = async (
  content: MailContent,
  signers: readonly DkimSigner[],
): Promise<Buffer> => dkimSign(await composeMail(content), signers)
