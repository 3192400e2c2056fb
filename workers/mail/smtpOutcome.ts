import { isNoSuchMailbox } from '../../shared/mail/dsn.ts'
import type { RecipientOutcome } from '../../sql/mail/mailAttempts.ts'

const ERROR_MAX_LENGTH = 500

/** What nodemailer tells of a refusal. */
export type SmtpFailure = Error & {
  code?: string
  command?: string
  response?: string
  responseCode?: number
  rejectedErrors?: (SmtpFailure & { recipient?: string })[]
}

/** The outcomes of a message that was accepted, for all recipients or for some. */
export function outcomesOfSuccess(
  to: readonly string[],
  refused: SmtpFailure['rejectedErrors'] = [],
): RecipientOutcome[] {
  const byAddress = new Map(refused.map((failure) => [failure.recipient, failure]))
  return to.map((address) => {
    const failure = byAddress.get(address)
    return failure === undefined
      ? { address, state: 'sent', error: null }
      : outcome(address, failure)
  })
}

/** The outcomes of a message that was not accepted. */
export function outcomesOfFailure(to: readonly string[], failure: SmtpFailure): RecipientOutcome[] {
  const byAddress = new Map(failure.rejectedErrors?.map((refusal) => [refusal.recipient, refusal]))
  return to.map((address) => outcome(address, byAddress.get(address) ?? failure))
}

/** One outcome for all. */
export const allOf = (
  to: readonly string[],
  state: 'deferred' | 'failed',
  error: string,
): RecipientOutcome[] => to.map((address) => ({ address, state, error: asText(error) }))

/**
 * The words of another host, or of a library about it, as one line that every column takes: a message that was handed
 * over must not go out again because what was said about it cannot be kept.
 */
const asText = (said: string): string =>
  said
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, ERROR_MAX_LENGTH)
    .toWellFormed()

/**
 * 5xx to MAIL, RCPT or DATA is the other side's last word on a message (RFC 5321 §4.2.1). Everything else may pass: 4xx,
 * a connection that fails, and also a refused login or greeting, which is trouble between us and the other side.
 */
function outcome(address: string, failure: SmtpFailure): RecipientOutcome {
  const said = asText(
    isTooLarge(failure) ? `552 5.3.4 ${failure.message}` : (failure.response ?? failure.message),
  )
  const atRecipient = /^RCPT/i.test(failure.command ?? '')
  return {
    address,
    ...(atRecipient && isNoSuchMailbox(said) ? { noSuchMailbox: true as const } : {}),
    state: isPermanent(failure) ? 'failed' : 'deferred',
    error: said,
  }
}

function isPermanent(failure: SmtpFailure): boolean {
  const { responseCode, code, command } = failure
  if (isTooLarge(failure)) return true
  if (responseCode === undefined || responseCode < 500) return false
  if (code === 'EAUTH' || code === 'ETLS') return false
  return command === undefined || !/^(CONN|EHLO|HELO|AUTH|STARTTLS)/i.test(command)
}

/** The host has told its limit, and nodemailer sends it nothing larger (RFC 1870 §5): no later try can change that. */
const isTooLarge = ({ responseCode, code, command }: SmtpFailure): boolean =>
  code === 'EMESSAGE' && command === 'MAIL FROM' && responseCode === undefined
