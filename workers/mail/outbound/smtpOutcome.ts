import { relayIdOf } from '../../../shared/mail/http/relayReport.ts'
import { isNoSuchMailbox } from '../../../shared/mail/parse/dsn.ts'
import { storableLine } from '../../../shared/storable.ts'
import type { RecipientOutcome } from '../../../sql/mail/outbound/mailAttempts.ts'

const ERROR_MAX_LENGTH = 500

/** Describes an SMTP refusal as nodemailer reports it. */
export type SmtpFailure = Error & {
  code?: string
  command?: string
  response?: string
  responseCode?: number
  rejectedErrors?: (SmtpFailure & { recipient?: string })[]
}

/**
 * Returns the outcome for each recipient of a mail that the mail host accepted. The mail host may have accepted a mail
 * and refused some of its recipients.
 * @param reply is the reply 250 of a mail relay. This reply contains the identifier that the relay uses for the message
 * in its later reports.
 */
export function outcomesOfSuccess(
  to: readonly string[],
  refused: SmtpFailure['rejectedErrors'] = [],
  reply?: string,
): RecipientOutcome[] {
  const byAddress = new Map(refused.map((failure) => [failure.recipient, failure]))
  const relayId = relayIdOf(reply ?? '')
  return to.map((address) => {
    const failure = byAddress.get(address)
    return failure === undefined
      ? { address, state: 'sent', error: null, ...(relayId === null ? {} : { relayId }) }
      : outcome(address, failure)
  })
}

/** Returns the outcome for each recipient of a mail that the mail host refused. */
export function outcomesOfFailure(to: readonly string[], failure: SmtpFailure): RecipientOutcome[] {
  const byAddress = new Map(failure.rejectedErrors?.map((refusal) => [refusal.recipient, refusal]))
  return to.map((address) => outcome(address, byAddress.get(address) ?? failure))
}

/** Returns the same delivery outcome for each recipient. */
export const allOf = (
  to: readonly string[],
  state: 'deferred' | 'failed',
  error: string,
): RecipientOutcome[] =>
  to.map((address) => ({ address, state, error: storableLine(error, ERROR_MAX_LENGTH) }))

/**
 * Lists the SMTP replies that demand TLS or a login (RFC 3207 §4, RFC 4954 §6). These replies are transient, because
 * they concern the two hosts and not the message: the last TLS handshake or login may have failed only for a moment.
 */
const LINK_REPLIES = [530, 534, 535, 538]

/** Returns the failure as a transient failure, with the reply of the mail host. */
export const asTransient = (failure: SmtpFailure): SmtpFailure =>
  Object.assign(new Error(failure.message), {
    response: failure.response ?? failure.message,
    ...(failure.code === undefined ? {} : { code: failure.code }),
    ...(failure.command === undefined ? {} : { command: failure.command }),
    responseCode: 451,
  })

/**
 * Returns the delivery outcome for an SMTP failure. A 5xx reply to MAIL, RCPT or DATA is permanent (RFC 5321 §4.2.1),
 * unless the reply demands TLS or a login. Every other failure is transient: a 4xx reply, a failed connection, and a
 * greeting or login that the mail host refused with any reply.
 */
function outcome(address: string, failure: SmtpFailure): RecipientOutcome {
  const said = storableLine(
    isTooLarge(failure) ? `552 5.3.4 ${failure.message}` : (failure.response ?? failure.message),
    ERROR_MAX_LENGTH,
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
  if (LINK_REPLIES.includes(responseCode)) return false
  if (code === 'EAUTH' || code === 'ETLS') return false
  return command === undefined || !/^(CONN|EHLO|HELO|AUTH|STARTTLS)/i.test(command)
}

/** Tells whether the mail host refused the message but keeps the SMTP connection open. */
export const isRefusal = ({ code, responseCode }: SmtpFailure): boolean =>
  (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode !== 421

/**
 * Tells whether the message is larger than the limit that the mail host announced. nodemailer does not send such a
 * message (RFC 1870 §5), so a retry cannot succeed.
 */
const isTooLarge = ({ responseCode, code, command }: SmtpFailure): boolean =>
  code === 'EMESSAGE' && command === 'MAIL FROM' && responseCode === undefined
