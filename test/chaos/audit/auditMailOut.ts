import type { Evidence, Sunk } from './evidence.ts'
import type { Ledger, MailOut } from './ledger.ts'
import { auditRepeats } from './mailRepeats.ts'

/**
 * Checks that each accepted outgoing mail was sent, and that a mail was sent again only after a crash. Repeated copies
 * of a mail must have the same Message-ID and the same content. All requests with the same Idempotency-Key must get
 * identical responses.
 */
export function auditMailOut({ mailsOut }: Ledger, evidence: Evidence): string[] {
  const sunkBy = Map.groupBy(evidence.sunk, ({ subject }) => tokenOf(subject))
  const findings = mailsOut.flatMap((mail) => {
    const sunk = sunkBy.get(mail.token) ?? []
    return [...auditAnswers(mail), ...auditCopies(mail, sunk), ...auditReach(mail, sunk, evidence)]
  })
  return [...findings, ...auditRepeats(evidence)]
}

/** Returns the unique word in a mail subject that identifies the message. In a reply, `Re:` precedes this word. */
export const tokenOf = (subject: string): string => subject.replace(/^Re:\s*/i, '')

function auditAnswers({ token, told, refusal, messageIds }: MailOut): string[] {
  const different = new Set(messageIds)
  return [
    ...(told === 'refused' ? [`mail out: ${token} was refused: ${refusal}`] : []),
    ...(different.size > 1
      ? [`mail out: the key of ${token} was answered with ${different.size} Message-IDs`]
      : []),
  ]
}

function auditCopies({ token, messageIds }: MailOut, sunk: readonly Sunk[]): string[] {
  const ids = new Set(sunk.map(({ messageId }) => messageId))
  if (ids.size > 1) return [`mail out: ${token} was sent under ${ids.size} Message-IDs`]
  const [sent] = ids
  const [answered] = messageIds
  if (sent !== undefined && answered !== undefined && sent !== answered) {
    return [`mail out: ${token} was answered with ${answered} and sent as ${sent}`]
  }
  const contents = new Set(sunk.map(({ contentHash }) => contentHash))
  return contents.size > 1 ? [`mail out: ${token} was sent with ${contents.size} contents`] : []
}

function auditReach(mail: MailOut, sunk: readonly Sunk[], evidence: Evidence): string[] {
  const { token, told, remote, local, messageIds } = mail
  const reached = new Set(sunk.flatMap(({ to }) => to))
  const copies = local.map((inbox) => ({
    inbox,
    count: (evidence.inboxes[inbox] ?? []).filter(
      ({ subject, labels }) => tokenOf(subject) === token && labels.includes('received'),
    ).length,
  }))
  const twice = copies
    .filter(({ count }) => count > 1)
    .map(({ inbox, count }) => `mail out: ${token} is ${count} times in ${inbox}`)
  if (told !== 'accepted') return twice
  const status = evidence.deliveryStatus[messageIds[0] ?? '']
  return [
    ...twice,
    ...remote
      .filter((address) => !reached.has(address))
      .map((address) => `mail out: ${token} was accepted and has not reached ${address}`),
    ...copies
      .filter(({ count }) => count === 0)
      .map(({ inbox }) => `mail out: ${token} was accepted and is not in ${inbox}`),
    ...(status === 'sent' ? [] : [`mail out: ${token} has the status ${status}, not sent`]),
  ]
}
