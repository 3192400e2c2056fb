import { authenticate, type DNSResolver } from 'mailauth'
import {
  type Authentication,
  authenticationWord,
  BEYOND_BOUNDS,
  INTERNAL,
  UNCHECKED,
} from '../../shared/mail/authentication.ts'
import { authenticable } from '../../shared/mail/authenticationBounds.ts'
import type { Arrival } from '../../sql/mail/inbound.ts'
import type { LookUp } from './lookUp.ts'

/** For all questions about one message; past it the message is stored as it is, with `temperror`. */
const TIMEOUT_MS = 10_000
/** Each costs a key from the DNS and a check of the whole body; more is an attack (RFC 6376 §8.4 leaves it to us). */
const SIGNATURES_MAX = 10

/**
 * Checks who sent a message, by its envelope, its signatures and the DNS of its sender.
 * @returns never a refusal: what a verdict means is for whoever reads the message to decide.
 */
export async function authenticateMail(
  { bytes, remoteIp, helo, envelopeFrom }: Arrival,
  { lookUp, ownHost }: { lookUp: LookUp; ownHost: string },
): Promise<Authentication> {
  if (remoteIp === null) return INTERNAL
  const extent = authenticable(bytes)
  if (extent === 'no') return BEYOND_BOUNDS
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), TIMEOUT_MS)
  try {
    const result = await Promise.race([
      authenticate(
        extent === 'whole' ? withSignatures(bytes, SIGNATURES_MAX) : withSignatures(bytes, 0),
        {
          ip: remoteIp,
          helo: helo ?? '',
          sender: envelopeFrom,
          mta: ownHost,
          resolver: lookUp as DNSResolver,
          trustReceived: false,
          disableBimi: true,
        },
      ),
      late,
    ])
    if (result === null) return UNCHECKED
    const { spf, dkim, dmarc, arc } = result
    return {
      spf: authenticationWord(spf === false ? undefined : spf?.status.result),
      dkim: dkimWord(dkim.results.map(({ status }) => status.result)),
      dmarc: authenticationWord(dmarc === false ? undefined : dmarc?.status.result),
      arc: authenticationWord(arc === false ? undefined : arc?.status?.result),
      internal: false,
    }
  } catch {
    // A message that the library cannot read is nobody's.
    return {
      ...UNCHECKED,
      spf: 'permerror',
      dkim: 'permerror',
      dmarc: 'permerror',
      arc: 'permerror',
    }
  } finally {
    clearTimeout(timer)
  }
}

/** One good signature is enough: forwarders break those of others. */
function dkimWord(words: readonly (string | undefined)[]) {
  return authenticationWord(words.includes('pass') ? 'pass' : words[0])
}

/** The message without its signatures beyond the first `max`; without ARC too where there are to be none. */
function withSignatures(bytes: Buffer, max: number): Buffer {
  const text = bytes.toString('latin1')
  const end = /\r?\n\r?\n/.exec(text)?.index ?? text.length
  const fields = text.slice(0, end).split(/\r?\n(?![ \t])/)
  const signature =
    max === 0 ? /^(?:dkim-signature|arc-[a-z-]+)[ \t]*:/i : /^dkim-signature[ \t]*:/i
  if (fields.filter((field) => signature.test(field)).length <= max) return bytes
  let seen = 0
  const kept = fields.filter((field) => !signature.test(field) || ++seen <= max)
  return Buffer.from(kept.join('\r\n') + text.slice(end), 'latin1')
}
