import { messageIdHash } from '../../../shared/mail/threading.ts'
import { type Pool, transaction } from '../../db.ts'
import { FIND_MESSAGE, type Message, type MessageRow, toMessage } from './messages.ts'

/** Reports that a message would have more than `LABELS_MAX` labels. */
export class TooManyLabelsError extends Error {}

/** Sets the maximum number of labels of one message (docs/contract.md §4). */
export const LABELS_MAX = 50

/**
 * Adds labels to a message and removes labels. If a label is in both lists, the function removes the label from the
 * message.
 * @returns the updated message. Null means that the project has no such message.
 * @throws {TooManyLabelsError} if the message would have too many labels.
 */
export async function updateLabels(
  pool: Pool,
  change: {
    projectId: string
    messageId: string
    add: readonly string[]
    remove: readonly string[]
  },
): Promise<Message | null> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<MessageRow>(`${FIND_MESSAGE} for update of m`, [
      change.projectId,
      messageIdHash(change.messageId),
    ])
    if (rows[0] === undefined) return null
    const kept = new Set([...rows[0].labels, ...change.add])
    for (const label of change.remove) kept.delete(label)
    // The service itself may have added labels above the maximum number of labels. Such a message may keep or lose
    // labels.
    if (kept.size > Math.max(LABELS_MAX, rows[0].labels.length)) throw new TooManyLabelsError()
    await db.query('update messages set labels = $2 where row = $1', [rows[0].row, [...kept]])
    return toMessage({ ...rows[0], labels: [...kept] })
  })
}
