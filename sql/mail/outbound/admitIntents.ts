import type { LockedIntent, LockedIntents } from './lockIntents.ts'
import { recipientsOf } from './lockIntents.ts'
import type { AcceptedMessage, Refused, SendIntent } from './sendIntents.ts'

/**
 * Describes a send intent (an API request to send or reply) that the service may store, with the API response to the
 * caller. The field `n` is the index of the send intent in its batch.
 */
export type Admitted = AcceptedMessage & {
  kind: 'admitted'
  n: number
  intent: SendIntent
  approvalHours: number
  recipients: number
}

/**
 * Describes the decision about a send intent (an API request to send or reply), which is admitted, or refused for a
 * reason. The type `SendOutcome` explains the reasons for a refusal.
 */
export type Decision = Admitted | Refused

/**
 * Decides about send intents (API requests to send or reply) one after the other, and admits or refuses each of them.
 * The caller has already locked the rows that the intents need.
 * @param newThread returns the id for a new thread.
 */
export function admitIntents(
  intents: readonly SendIntent[],
  locked: LockedIntents,
  { dailyLimit, newThread }: { dailyLimit: number | null; newThread: () => string },
): Decision[] {
  const keys = new Set<string>()
  const drafts = new Set<string>()
  const events = new Set<string>()
  const used = new Map<string, number>()
  return intents.map((intent, n): Decision => {
    const { projectId, threadRow, key, draft, ownEvent = null } = intent
    const known = locked.intents[n] ?? null
    if (known === null) return { kind: 'gone' }
    if (threadRow !== null && known.threadId === null) return { kind: 'no thread' }
    const keyOfProject = key === null ? null : JSON.stringify([projectId, key.name])
    if (known.keyIsTaken || (keyOfProject !== null && keys.has(keyOfProject)))
      return { kind: 'repeat' }
    if (draft !== null && (known.draftVersion !== draft.version || drafts.has(draft.id)))
      return { kind: 'repeat' }
    const recipients = recipientsOf(intent).length
    const total = (used.get(projectId) ?? known.used) + recipients
    if (dailyLimit !== null && total > dailyLimit) return { kind: 'over quota' }
    const event = ownEvent === null ? null : JSON.stringify([projectId, ownEvent.uid])
    if (event !== null && (!known.isEventCurrent || events.has(event)))
      return { kind: 'event changed' }
    if (event !== null) events.add(event)
    used.set(projectId, total)
    if (keyOfProject !== null) keys.add(keyOfProject)
    if (draft !== null) drafts.add(draft.id)
    return {
      kind: 'admitted',
      n,
      intent,
      recipients,
      approvalHours: known.approvalHours,
      threadId: known.threadId ?? newThread(),
      createdAt: locked.now.toISOString(),
      status: statusOf(intent, known),
    }
  })
}

/**
 * Decides when the service sends a mail: after the owner's approval, at the scheduled time, or at once. Mail of some
 * OAuth clients always waits for the owner's approval.
 */
function statusOf(intent: SendIntent, known: LockedIntent): AcceptedMessage['status'] {
  if (intent.held || known.sendPolicy === 'approve' || known.isToUnknown) return 'held'
  return intent.sendAt === null ? 'queued' : 'scheduled'
}
