/**
 * Makes DKIM signatures (RFC 6376) with rsa-sha256 over relaxed/relaxed canonical forms, with a key of 2048 bits (RFC
 * 8301).
 *
 * The service does not use nodemailer's signer, because its signatures list each field name only once. An attacker can
 * then add a second field of the same name in transit. Mail programs would show this field, and the DKIM signature
 * would stay valid (RFC 6376 §8.15). The signer of this service lists each field name once more than the field occurs
 * in the message.
 */
import { createHash, createSign, type KeyObject } from 'node:crypto'

/**
 * Holds the signing key of a domain. The DNS record at `SELECTOR._domainkey.DOMAIN` holds the public part of the
 * signing key.
 */
export type DkimSigner = { domain: string; selector: string; privateKey: KeyObject }

/**
 * Lists the header fields that the DKIM signature covers. The list leaves out header fields that mailing lists and
 * relays add.
 */
const SIGNED_FIELDS = [
  'from',
  'to',
  'cc',
  'subject',
  'date',
  'message-id',
  'reply-to',
  'in-reply-to',
  'references',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'list-unsubscribe',
  'list-unsubscribe-post',
] as const

const LINE_LENGTH = 72
/** Sets the longest string of a TXT record in bytes (RFC 1035 §3.3). */
const TXT_STRING_BYTES = 255

/** Prepends one DKIM signature for each signer to a message. Every line of the message must end with CRLF. */
export function dkimSign(message: Buffer, signers: readonly DkimSigner[]): Buffer {
  if (signers.length === 0) return message
  const end = message.indexOf('\r\n\r\n')
  const header = message.subarray(0, end === -1 ? message.length : end + 2).toString('latin1')
  const body = end === -1 ? '' : message.subarray(end + 4).toString('latin1')
  const bodyHash = createHash('sha256').update(relaxedBody(body), 'latin1').digest('base64')
  const fields = header.split(/\r\n(?![ \t])/).filter((field) => field !== '')
  const signatures = signers.map((signer) => signatureField(signer, fields, bodyHash))
  return Buffer.concat([Buffer.from(signatures.join(''), 'latin1'), message])
}

function signatureField(
  { domain, selector, privateKey }: DkimSigner,
  fields: readonly string[],
  bodyHash: string,
): string {
  const names: string[] = []
  const signed: string[] = []
  for (const name of SIGNED_FIELDS) {
    // A DKIM signature covers fields of the same name from the bottom up (RFC 6376 §5.4.2). The additional name at the
    // end of the list states that no further field of this name exists.
    const own = fields.filter((field) => nameOf(field) === name).toReversed()
    names.push(...own.map(() => name), name)
    signed.push(...own.map((field) => `${relaxedField(field)}\r\n`))
  }
  const tags = [
    'v=1; a=rsa-sha256; c=relaxed/relaxed',
    `d=${domain}; s=${selector}`,
    `h=${folded(names, ':')}`,
    `bh=${bodyHash}`,
    'b=',
  ]
  const unsigned = `DKIM-Signature: ${tags.join(';\r\n ')}`
  const signer = createSign('RSA-SHA256')
  signer.update(signed.join('') + relaxedField(unsigned), 'latin1')
  const signature = signer.sign(privateKey, 'base64').match(/.{1,72}/g)!
  return `${unsigned}${signature.join('\r\n ')}\r\n`
}

const nameOf = (field: string): string => field.slice(0, field.indexOf(':')).trim().toLowerCase()

/** Joins the items of a DKIM tag, and folds lines between the items, as RFC 6376 §3.5 allows. */
function folded(items: readonly string[], separator: string): string {
  let length = 0
  return items
    .map((item, n) => {
      const text = n === items.length - 1 ? item : item + separator
      length += text.length
      if (length <= LINE_LENGTH) return text
      length = text.length
      return `\r\n ${text}`
    })
    .join('')
}

/** Writes a header field in the relaxed form of DKIM (RFC 6376 §3.4.2). */
function relaxedField(field: string): string {
  const colon = field.indexOf(':')
  const value = field
    .slice(colon + 1)
    .replace(/\r\n/g, '')
    .replace(/[ \t]+/g, ' ')
    .trim()
  return `${nameOf(field)}:${value}`
}

/**
 * Writes a message body in the relaxed form of DKIM (RFC 6376 §3.4.4). Each step takes linear time, because a body can
 * have 35 MB.
 */
function relaxedBody(body: string): string {
  const lines = body
    .replace(/[ \t]+/g, ' ')
    .replaceAll(' \r\n', '\r\n')
    .replace(/ $/, '')
  let end = lines.length
  while (end >= 2 && lines.endsWith('\r\n', end)) end -= 2
  return end === 0 ? '' : `${lines.slice(0, end)}\r\n`
}

/** Returns the DNS record of a DKIM public key (RFC 6376 §3.6.1). */
export const dkimRecord = (publicKey: KeyObject): string =>
  `v=DKIM1; k=rsa; p=${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`

/** Writes a TXT record for a zone file, as strings of at most 255 bytes, which resolvers concatenate. */
export function txtStrings(text: string): string {
  const strings = text.match(new RegExp(`.{1,${TXT_STRING_BYTES}}`, 'gs')) ?? ['']
  return strings.map((part) => `"${part.replace(/["\\]/g, '\\$&')}"`).join(' ')
}
