import type { Evidence, ListedMessage } from './evidence.ts'
import type { Ledger, MailIn } from './ledger.ts'

/**
 * Checks three rules: each accepted mail is stored once, a deleted mail is no longer stored, and a label that a client
 * added is still there.
 */
export function auditMailIn({ mailsIn }: Ledger, { inboxes }: Evidence): string[] {
  return mailsIn.flatMap((mail) => {
    const found = (inboxes[mail.inbox] ?? []).filter(({ subject }) => subject === mail.subject)
    return [...auditPresence(mail, found), ...auditLabels(mail, found), ...auditWait(mail)]
  })
}

function auditPresence(mail: MailIn, found: readonly ListedMessage[]): string[] {
  const { messageId, inbox, told, deleted } = mail
  if (told === 'refused') {
    return [`mail in: ${messageId} for ${inbox} was refused for good: ${mail.refusal}`]
  }
  if (found.length > 1) {
    return [`mail in: ${messageId} is ${found.length} times in ${inbox}`]
  }
  if (deleted === 'refused') return [`mail in: the deletion of ${messageId} was refused`]
  if (deleted === 'accepted') {
    return found.length === 0 ? [] : [`mail in: ${messageId} was deleted and is in ${inbox}`]
  }
  if (told === 'accepted' && deleted === null && found.length === 0) {
    return [`mail in: ${messageId} was accepted and is not in ${inbox}`]
  }
  return []
}

function auditLabels(mail: MailIn, found: readonly ListedMessage[]): string[] {
  if (mail.deleted !== null || found[0] === undefined) return []
  const { labels } = found[0]
  return mail.labels.flatMap(({ label, told }) => {
    if (told === 'refused') return [`labels: ${label} was refused for ${mail.messageId}`]
    if (told === 'accepted' && !labels.includes(label)) {
      return [`labels: ${label} was added to ${mail.messageId} and is not there`]
    }
    return []
  })
}

function auditWait({ waited, messageId }: MailIn): string[] {
  if (waited === null || waited.told === 'unknown') return []
  if (waited.told === 'refused') return [`wait: waiting for ${messageId} was refused`]
  if (waited.messageId === messageId) return []
  return [`wait: who waited for ${messageId} was told of ${waited.messageId}`]
}
