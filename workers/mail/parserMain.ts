import { type IndexedMail, indexed } from '../../shared/mail/indexedMail.ts'
import { parseMail } from '../../shared/mail/parseMail.ts'
/** A message to parse. */
export type ParseRequest = { raw: Uint8Array; domain: string; projectId: string }
/** The parsed message, or the parser's error. */
export type ParseAnswer = IndexedMail | { error: string }

/** Parses one message after the other for `createMailParser`, which kills this process when one takes too much. */
process.on('message', async ({ raw, domain, projectId }: ParseRequest) => {
  let answer: ParseAnswer
  try {
    answer = indexed(await parseMail(raw, domain), projectId)
  } catch (error) {
    answer = { error: String(error) }
  }
  process.send?.(answer)
})
// The parent is gone.
process.on('disconnect', () => process.exit(0))
