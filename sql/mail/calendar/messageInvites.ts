import type { ReadInvite } from '../../../shared/mail/calendar/invite.ts'
import { INVITES_MAX } from '../../../shared/mail/calendar/invite.ts'
import type { Client } from '../../db.ts'
import { type AppliedInvite, applyInvites } from './applyInvites.ts'
import type { InvitingMessage } from './knownEvents.ts'

/**
 * Returns a text that is equal for two copies of one calendar invitation in a message. Mail programs send the same
 * event both as a part of the mail and as an attached file.
 */
const keyOf = ({ uid, recurrenceId, method, sequence, stamp }: ReadInvite | AppliedInvite) =>
  JSON.stringify([uid, recurrenceId, method, sequence, stamp])

/**
 * Adds the invites of a calendar file to the invites of its message, and applies the added invites to the calendar. The
 * function runs in the caller's transaction.
 * @returns the invites that are new for the message.
 */
export async function recordInvites(
  db: Client,
  messageRow: string,
  invites: readonly ReadInvite[],
): Promise<AppliedInvite[]> {
  if (invites.length === 0) return []
  const { rows } = await db.query<InvitingMessage & { invites: AppliedInvite[] | null }>({
    name: 'lock-invites',
    text: `
      select m.row, m.project_id as "projectId", m.direction, m.from_addresses as "from", m.authentication, m.invites,
        p.email_address as "inboxAddress"
      from messages m join projects p on p.id = m.project_id
      where m.row = $1 for no key update of m`,
    values: [messageRow],
  })
  const [row] = rows
  if (row === undefined) return []
  const { invites: stored, ...message } = row
  const known = stored ?? []
  const keys = new Set(known.map(keyOf))
  const fresh = invites
    .filter((one) => {
      const key = keyOf(one)
      if (keys.has(key)) return false
      keys.add(key)
      return true
    })
    .slice(0, INVITES_MAX - known.length)
  if (fresh.length === 0) return []
  const applied = await applyInvites(db, message, fresh)
  await db.query({
    name: 'store-invites',
    text: 'update messages set invites = $2 where row = $1',
    values: [messageRow, JSON.stringify([...known, ...applied])],
  })
  return applied
}
