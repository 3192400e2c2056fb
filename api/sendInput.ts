import { Type as t } from '@sinclair/typebox'
import { addressKey, parseAddress } from '../shared/address.ts'
import { badRequest } from './errors.ts'

/** Recipients of one message over to, cc and bcc (contract §4). */
export const RECIPIENTS_MAX = 50
/** RFC 5322 §2.1.1: a line is at most 998 characters. */
export const SUBJECT_MAX_LENGTH = 998

const AddressList = (minItems: number) =>
  t.Array(t.String({ maxLength: 320 }), {
    minItems,
    maxItems: RECIPIENTS_MAX,
    examples: [['ada@example.com']],
  })

const Text = t.String({ description: 'Plain-text body.' })
const Html = t.Optional(
  t.String({ description: 'HTML body; the message is then sent as multipart/alternative.' }),
)
/** Said here so that a client is told, rather than its files left out in silence. */
const NoAttachments = t.Optional(
  t.Array(t.Unknown(), { maxItems: 0, error: 'be left out: attachments cannot be sent yet' }),
)

export const SendBody = t.Object({
  to: AddressList(1),
  subject: t.String({
    maxLength: SUBJECT_MAX_LENGTH,
    pattern: '^[^\\r\\n]*$',
    error: `be one line of at most ${SUBJECT_MAX_LENGTH} characters`,
  }),
  text: Text,
  html: Html,
  cc: t.Optional(AddressList(0)),
  bcc: t.Optional(AddressList(0)),
  attachments: NoAttachments,
})

export const ReplyBody = t.Object({
  text: Text,
  html: Html,
  replyAll: t.Optional(
    t.Boolean({ description: 'Also answer the other recipients of the original.' }),
  ),
  attachments: NoAttachments,
})

/** Reads addresses, each once. @throws {ApiError} 400, which names the one that is wrong. */
export function readAddresses(field: string, texts: string[]): string[] {
  return unique(
    texts.map((text, n) => {
      const address = parseAddress(text)
      if (address === null)
        throw badRequest(`${field}[${n}] must be one email address, such as ada@example.com`)
      return address
    }),
  )
}

/** Each address once; upper and lower case make no difference. */
export function unique(addresses: string[]): string[] {
  return [...new Map(addresses.map((address) => [addressKey(address), address])).values()]
}
