import { tokenOf } from './auditMailOut.ts'
import type { Evidence } from './evidence.ts'
import type { Ledger, Listener } from './ledger.ts'

/**
 * Checks that the numbers in the event stream have no gaps and no repetitions, and that each message and each payment
 * has exactly one event.
 */
export function auditEvents(ledger: Ledger, evidence: Evidence): string[] {
  return ledger.listeners.flatMap((listener, n) => [
    ...auditNumbers(listener, evidence),
    ...auditMessages(listener, evidence, ledger),
    // Only the first listener follows the events of the seller’s project, so only this listener's events are compared
    // with the payments.
    ...(n === 0 ? auditPayments(listener, evidence) : []),
  ])
}

function auditNumbers({ inbox, heard }: Listener, { newestEvent }: Evidence): string[] {
  const findings: string[] = []
  let expected = 1
  for (const { id, type } of heard) {
    if (type === 'stream.gap') findings.push(`events: ${inbox} was told of a gap`)
    else if (numberOf(id) !== expected) {
      findings.push(`events: ${inbox} heard ${id} where ${expected} was next`)
    }
    expected = numberOf(id) + 1
  }
  const newest = newestEvent[inbox] ?? 0
  if (expected - 1 < newest) {
    findings.push(`events: ${inbox} heard up to ${expected - 1} of ${newest}`)
  }
  return findings
}

/**
 * Returns the sequence number of an event of the event stream from its id. In an event id, the number comes first and
 * the time of the event follows.
 */
const numberOf = (id: string): number => Number.parseInt(id, 10)

function auditMessages(
  { inbox, heard }: Listener,
  { inboxes }: Evidence,
  { mailsIn, mailsOut }: Ledger,
): string[] {
  const received = countOf(heard.filter(({ type }) => type === 'message.received'))
  const sent = countOf(heard.filter(({ type }) => type === 'message.sent'))
  const deleted = mailsIn.filter((mail) => mail.inbox === inbox && mail.deleted === 'accepted')
  const expected = [
    ...(inboxes[inbox] ?? []).filter(({ labels }) => labels.includes('received')),
    ...deleted,
  ].map(({ messageId }) => messageId)
  const accepted = mailsOut.filter((mail) => mail.sender === inbox && mail.told === 'accepted')
  return [
    ...expected.flatMap((id) => auditCount(`message.received of ${id}`, received.get(id))),
    ...accepted.flatMap(({ messageIds, token }) =>
      auditCount(`message.sent of ${tokenOf(token)}`, sent.get(messageIds[0] ?? '')),
    ),
    ...heard
      .filter(({ type }) => type === 'message.failed' || type === 'message.bounced')
      .map(({ type, subjectId }) => `events: ${type} of ${subjectId}`),
  ]
}

function auditPayments({ heard }: Listener, { payments }: Evidence): string[] {
  const settled = countOf(heard.filter(({ type }) => type === 'payment.settled'))
  return payments
    .filter(({ status }) => status === 'settled')
    .flatMap(({ id }) => auditCount(`payment.settled of ${id}`, settled.get(id)))
}

const auditCount = (name: string, count = 0): string[] =>
  count === 1 ? [] : [`events: ${name} was heard ${count} times`]

function countOf(heard: Listener['heard']): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { subjectId } of heard) {
    if (subjectId !== null) counts.set(subjectId, (counts.get(subjectId) ?? 0) + 1)
  }
  return counts
}
