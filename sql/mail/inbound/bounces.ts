import {
  type BounceKeys,
  isTagOf,
  readBounceTag,
} from '../../../shared/mail/compose/bounceAddress.ts'
import {
  type Bounce,
  type BouncedRecipient,
  isAddressDead,
  type ReturnedCopy,
} from '../../../shared/mail/parse/dsn.ts'
import { messageIdHash } from '../../../shared/mail/threading.ts'
import type { Queryable } from '../../db.ts'
import type { NewEvent } from '../../events/events.ts'
import { readMessageEvents } from '../messages/messageEvents.ts'
import { updateDeliveryStatus } from '../outbound/mailAttempts.ts'
import { suppress } from '../outbound/suppressions.ts'

/** Holds the label that a message gets when it bounces. */
const LABEL = 'bounced'

/** Holds the beginning of a recipient's error text that marks a bounce without proof. */
const UNPROVEN = 'unproven report: '

/** Tells whether a proven bounce has already marked a recipient as bounced. */
export const hasBouncedForSure = ({ state, error }: { state: string; error: string | null }) =>
  state === 'bounced' && error?.startsWith(UNPROVEN) !== true

type Recipient = { address: string; state: string }

/**
 * Records a bounce in the transaction that also stores the bounce message. A bounce counts only for a message of this
 * project and for its recipients. One recipient can forge a bounce about the others, because each has a copy of the
 * message. Therefore the function limits for which recipients a bounce counts.
 *
 * If the bounce reports a failure, the function marks the sent message and the recipient as bounced. If the failure is
 * permanent and the bounce is proven, the function also suppresses the recipient's address. A bounce that reports only
 * a delay changes nothing.
 * @returns the webhook events that the bounce causes.
 */
export async function recordBounce(
  db: Queryable,
  projectId: string,
  bounce: Bounce,
): Promise<NewEvent[]> {
  const failed = bounce.recipients.filter(({ action }) => action === 'failed')
  if (failed.length === 0) return []
  const { proof } = bounce
  const messageRow = await lockSent(
    db,
    projectId,
    proof === null ? bounce.messageIds : [proof.messageId],
  )
  if (messageRow === null) return []
  const { rows } = await db.query<Recipient>(
    'select address, state from outbound_recipients where message_row = $1',
    [messageRow],
  )
  const matched = proof === null ? match(bounce.isReport, failed, rows) : prove(proof, failed, rows)
  if (matched.length === 0) return []
  await db.query(
    `update outbound_recipients r set state = 'bounced', error = b.error, updated_at = clock_timestamp()
     from unnest($2::text[], $3::text[]) b (address, error)
     where r.message_row = $1 and r.address = b.address`,
    [
      messageRow,
      matched.map(({ address }) => address),
      matched.map(
        ({ recipient: { status, diagnostic } }) =>
          (proof === null ? UNPROVEN : '') + describe(status, diagnostic),
      ),
    ],
  )
  await suppress(
    db,
    { projectId, messageRow },
    matched
      .filter(
        ({ isNamed, recipient }) => proof !== null && isNamed && isAddressDead(recipient.status),
      )
      .map(({ address, recipient: { status, diagnostic } }) => ({
        address,
        reason: 'bounce',
        detail: describe(status, diagnostic),
      })),
  )
  await updateDeliveryStatus(db, [messageRow])
  // The function records the event `message.bounced` only if it marks a recipient as bounced. If an earlier unproven
  // bounce has already marked all of them, the event is already recorded.
  if (matched.every(({ wasBounced }) => wasBounced)) return []
  await db.query(
    `update messages set labels = labels || $2::text where row = $1 and not labels @> array[$2::text]`,
    [messageRow, LABEL],
  )
  const events = await readMessageEvents(db, [messageRow])
  return events.map(({ data, traceparent }) => ({
    projectId,
    type: 'message.bounced',
    data,
    traceparent,
  }))
}

/**
 * Locks the message that a bounce returns. The function takes the row locks in the same order as the worker process
 * that sends mail, so that the two cannot deadlock.
 */
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

type Match = {
  address: string
  recipient: BouncedRecipient
  /** Tells whether the bounce names the recipient's address. */
  isNamed: boolean
  wasBounced: boolean
}

const ENDED = ['failed', 'bounced']
const NOT_SENT = [...ENDED, 'queued', 'deferred']

/**
 * Returns those recipients of the returned message that a bounce is about. The bounce of a forwarded message may name
 * an address that is no recipient of the message. If the message has only one recipient, such a bounce still counts for
 * it.
 */
function match(
  isReport: boolean,
  failed: readonly BouncedRecipient[],
  recipients: readonly Recipient[],
): Match[] {
  // The mail host refused some recipients, so they got no message, and no bounce can be about them. A bounce may also
  // arrive before the service has recorded the delivery attempt. If the service must still send the mail to one of
  // several recipients, the bounce must not end the sending. The reason is that another recipient could have written
  // the bounce.
  const excluded = recipients.length === 1 ? ENDED : NOT_SENT
  const sent = recipients.filter(({ state }) => !excluded.includes(state))
  const named = failed.flatMap((recipient) => {
    const own = sent.find(({ address }) => names(recipient, address))
    return own === undefined
      ? []
      : [{ address: own.address, recipient, isNamed: true, wasBounced: false }]
  })
  if (named.length > 0) return [...new Map(named.map((one) => [one.address, one])).values()]
  if (!isReport || recipients.length !== 1 || sent.length !== 1) return []
  return [{ address: sent[0]!.address, recipient: failed[0]!, isNamed: false, wasBounced: false }]
}

/**
 * Returns the recipient whose copy of the sent message the bounce returns. A proven bounce is about this recipient
 * only, even if it names another address, because this recipient may have forwarded the mail.
 */
function prove(
  { address }: ReturnedCopy,
  failed: readonly BouncedRecipient[],
  recipients: readonly Recipient[],
): Match[] {
  const own = recipients.find((recipient) => recipient.address === address)
  if (own === undefined || own.state === 'failed') return []
  const naming = failed.find((recipient) => names(recipient, address))
  return [
    {
      address,
      recipient: naming ?? failed[0]!,
      isNamed: naming !== undefined,
      wasBounced: own.state === 'bounced',
    },
  ]
}

const names = ({ addresses }: BouncedRecipient, address: string): boolean =>
  addresses.some((named) => named.toLowerCase() === address.toLowerCase())

const describe = (status: string | null, diagnostic: string): string =>
  diagnostic !== '' ? diagnostic : `returned${status === null ? '' : ` (${status})`}`

/**
 * Sets the maximum number of sent copies of messages (each recipient gets one) that the function reads for one bounce
 * address. The address holds only the beginning of a message's hash, so several messages may fit it.
 */
const COPIES_MAX = 500

/**
 * Finds the copy of a sent message (each recipient gets one) that an inbound mail returns as a bounce. The recipient of
 * the inbound mail is the envelope sender of this copy. @returns null if the recipient is no bounce address of this
 * service, or if the sent message is deleted.
 */
export async function findReturnedCopy(
  db: Queryable,
  keys: BounceKeys,
  { projectId, envelopeTo }: { projectId: string; envelopeTo: string },
): Promise<(ReturnedCopy & { messageRow: string }) | null> {
  const tag = readBounceTag(envelopeTo)
  if (tag === null) return null
  const { rows } = await db.query<{ row: string; message_id: string; address: string }>({
    name: 'find-returned-copy',
    text: `select m.row, m.message_id, r.address from messages m join outbound_recipients r on r.message_row = m.row
           where m.project_id = $1 and m.message_id_hash between $2 and $3 limit ${COPIES_MAX}`,
    values: [projectId, ...hashRange(tag.hash)],
  })
  const copy = rows.find(({ message_id: messageId, address }) =>
    isTagOf(tag, keys, { projectId, messageId, recipient: address }),
  )
  if (copy === undefined) return null
  return { messageRow: copy.row, messageId: copy.message_id, address: copy.address }
}

/** Returns the lowest and the highest message hash with the given first bytes. */
export const hashRange = (start: Buffer): [Buffer, Buffer] => [
  start,
  Buffer.concat([start, Buffer.alloc(32 - start.length, 0xff)]),
]
