import type { PurchaseAnswer } from '../../shared/purse/purchaseAnswer.ts'
import {
  decompressed,
  headerValue,
  type ReceivedAnswer,
  shownHeaders,
  textOf,
} from '../vault/maskedAnswer.ts'

/**
 * Returns the response of a seller to a request without a secret. The service also keeps a body that is not text, and a
 * partial resource, because the buyer has paid for the response. Only a body above the size limit is dropped.
 */
export async function plainAnswer(answer: ReceivedAnswer): Promise<PurchaseAnswer> {
  return {
    status: answer.status,
    statusText: utf8Of(answer.statusText),
    headers: shownHeaders(answer.headers, utf8Of),
    ...(await plainBody(answer)),
  }
}

const utf8Of = (text: string): string => Buffer.from(text, 'latin1').toString('utf8')

type Body = Pick<PurchaseAnswer, 'body' | 'bodyOmitted' | 'bodyBase64'>

async function plainBody(answer: ReceivedAnswer): Promise<Body> {
  const omitted = (bodyOmitted: Body['bodyOmitted'], bytes: Uint8Array | null): Body => ({
    body: null,
    bodyOmitted,
    bodyBase64: bytes === null ? null : Buffer.from(bytes).toString('base64'),
  })
  if (answer.truncated) return omitted('too-large', null)
  const plain = await decompressed(answer.body, headerValue(answer, 'content-encoding'))
  if (plain === 'too-large') return omitted(plain, null)
  if (typeof plain === 'string') return omitted(plain, answer.body)
  const text = textOf(plain, headerValue(answer, 'content-type'))
  return text === null
    ? omitted('not-text', plain)
    : { body: text, bodyOmitted: null, bodyBase64: null }
}
