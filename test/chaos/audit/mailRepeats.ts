import type { Evidence, Sunk } from './evidence.ts'

/**
 * Sets the number of mails that the outbound worker pool sends at the same time. If its process crashes, at most this
 * number of mails is sent twice.
 */
const IN_HAND_MAX = 32

/** Describes a repeated copy of a mail that the smarthost had already accepted for the same recipient. */
type Repeat = { subject: string; to: string; cause: 'kill' | 'cut' | null }

/**
 * Finds the repeated copies of each mail, and for each copy the injected fault that happened after the previous copy.
 */
function mailRepeats({ sunk, mailFaults }: Evidence): Repeat[] {
  const copies = sunk.flatMap((mail) => mail.to.map((to) => ({ mail, to })))
  const groups = Map.groupBy(copies, ({ mail, to }) => `${mail.messageId} ${to}`)
  return [...groups.values()].flatMap((group) => {
    const [first, ...others] = group.toSorted((a, b) => a.mail.beganMs - b.mail.beganMs)
    let before: Sunk = first!.mail
    return others.map(({ mail, to }): Repeat => {
      const isBetween = (ms: number) => ms > before.beganMs && ms < mail.beganMs
      const killed = mailFaults.killedMs.some(isBetween)
      const cause = killed ? 'kill' : mailFaults.cutMs.some(isBetween) ? 'cut' : null
      before = mail
      return { subject: mail.subject, to, cause }
    })
  })
}

/**
 * Checks that the service repeats a mail only if its worker was killed, or if the connection to the smarthost broke
 * before the SMTP reply arrived. The kill of a worker may cause one repeat for each mail in progress, and a broken
 * connection may cause one repeat.
 */
export function auditRepeats(evidence: Evidence): string[] {
  const repeats = mailRepeats(evidence)
  const { killedMs, cutMs } = evidence.mailFaults
  const most = { kill: killedMs.length * IN_HAND_MAX, cut: cutMs.length }
  const count = (cause: Repeat['cause']) =>
    repeats.filter((repeat) => repeat.cause === cause).length
  return [
    ...repeats
      .filter(({ cause }) => cause === null)
      .map(({ subject, to }) => `mail out: ${subject} reached ${to} again without a crash`),
    ...(['kill', 'cut'] as const)
      .filter((cause) => count(cause) > most[cause])
      .map((cause) => `mail out: ${count(cause)} repeats, at most ${most[cause]} by a ${cause}`),
  ]
}

/** Returns the line of the chaos report about repeated mails. */
export function repeatsLine(evidence: Evidence): string {
  const repeats = mailRepeats(evidence)
  const by = (cause: Repeat['cause']) => repeats.filter((repeat) => repeat.cause === cause).length
  const { killedMs, cutMs } = evidence.mailFaults
  return (
    `mails out: ${evidence.sunk.length} copies, ${repeats.length} repeats: ` +
    `${by('kill')} after ${killedMs.length} kills of their worker, ` +
    `${by('cut')} after ${cutMs.length} ended connections, ${by(null)} after neither`
  )
}
