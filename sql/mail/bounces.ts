import type { MessageEventData } from '../../shared/events/events.ts'
import { type Bounce, type BouncedRecipient, isAddressDead } from '../../shared/mail/dsn.ts'
import { messageIdHash } from '../../shared/mail/threading.ts'
import type { Queryable } from '../db.ts'
import type { NewEvent } from '../events/events.ts'
import { MESSAGE_EVENT, updateDeliveryStatus } from './mailAttempts.ts'
import { suppress } from './suppressions.ts'

/** The label of a bounced message. */
const LABEL = 'bounced'

type Recipient = { address: string; state: string }

/**
 * Records a bounce in the transaction that stores it. It counts only for a message of this project and for recipients
 * that the message was sent to. Anyone can write a bounce; only hosts that got the message know its Message-ID.
 *
 * A failure marks message and recipient; a permanent failure also suppresses the address. A delay changes nothing.
 * @returns the events to record.
 */
export async function recordBounce(
  db: Queryable,
  projectId: string,
  bounce: Bounce,
): Promise<NewEvent[]> {
  const failed = bounce.recipients.filter(({ action }) => action === 'failed')
  if (failed.length === 0) return []
  const messageRow = await lockSent(db, projectId, bounce.messageIds)
  if (messageRow === null) return []
  const { rows } = await db.query<Recipient>(
    'select address, state from outbound_recipients where message_row = $1',
    [messageRow],
  )
  const matched = match(bounce.isReport, failed, rows)
  if (matched.length === 0) return []
  await db.query(
    `update outbound_recipients r set state = 'bounced', error = b.error, updated_at = clock_timestamp()
     from unnest($2::text[], $3::text[]) b (address, error)
     where r.message_row = $1 and r.address = b.address`,
    [
      messageRow,
      matched.map(({ address }) => address),
      matched.map(({ recipient: { status, diagnostic } }) => describe(status, diagnostic)),
    ],
  )
  await suppress(
    db,
    { projectId, messageRow },
    matched
      .filter(({ isNamed, recipient }) => isNamed && isAddressDead(recipient.status))
      .map(({ address, recipient: { status, diagnostic } }) => ({
        address,
        reason: 'bounce',
        detail: describe(status, diagnostic),
      })),
  )
  await updateDeliveryStatus(db, messageRow)
  await db.query(
    `update messages set labels = labels || $2::text where row = $1 and not labels @> array[$2::text]`,
    [messageRow, LABEL],
  )
  const event = await db.query<{ data: MessageEventData }>(MESSAGE_EVENT, [messageRow])
  return event.rows.map(({ data }) => ({ projectId, type: 'message.bounced', data }))
}

/** Locks the returned message of this project, in the lock order of the worker. */
async function lockSent(
  db: Queryable,
  projectId: string,
  messageIds: readonly string[],
): Promise<string | null> {
  const { rows } = await db.query<{ row: string }>({
    name: 'lock-sent',
    text: `
      select m.row from unnest($2::bytea[]) with ordinality h (hash, nearness)
      join messages m on m.project_id = $1 and m.message_id_hash = h.hash
      join outbound_mails o on o.message_row = m.row
      order by h.nearness limit 1 for no key update of o`,
    values: [projectId, messageIds.map(messageIdHash)],
  })
  return rows[0]?.row ?? null
}

/**
 * Matches a bounce with the recipients of its message. After a forward the bounce may name an unknown address. A report
 * on a message with one recipient still counts for that recipient, but does not suppress it.
 */
function match(
  isReport: boolean,
  failed: readonly BouncedRecipient[],
  recipients: readonly Recipient[],
) {
  // A recipient refused at sending got no message that could bounce.
  const sent = recipients.filter(({ state }) => state !== 'failed' && state !== 'bounced')
  const named = failed.flatMap((recipient) => {
    const keys = recipient.addresses.map((address) => address.toLowerCase())
    const own = sent.find(({ address }) => keys.includes(address.toLowerCase()))
    return own === undefined ? [] : [{ address: own.address, recipient, isNamed: true }]
  })
  if (named.length > 0) return [...new Map(named.map((one) => [one.address, one])).values()]
  if (!isReport || recipients.length !== 1 || sent.length !== 1) return []
  return [{ address: sent[0]!.address, recipient: failed[0]!, isNamed: false }]
}

const describe = (status: string | null, diagnostic: string): string =>
  diagnostic !== '' ? diagnostic : `returned${status === null ? '' : ` (${status})`}`

/** Whether a bounce names a message of this project and a recipient of it. Such a bounce passes an allow list. */
export async function isBounceOfOurs(
  db: Queryable,
  projectId: string,
  { messageIds, recipients }: Bounce,
): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'find-bounced',
    text: `select from messages m join outbound_recipients r on r.message_row = m.row
           where m.project_id = $1 and m.message_id_hash = any ($2)
             and lower(r.address) = any ($3) limit 1`,
    values: [
      projectId,
      messageIds.map(messageIdHash),
      recipients.flatMap(({ addresses }) => addresses.map((address) => address.toLowerCase())),
    ],
  })
  return rowCount === 1
}
