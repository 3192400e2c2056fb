import { addressKey, domainOf } from '../../../shared/mail/address.ts'
import { readBounceTag } from '../../../shared/mail/compose/bounceAddress.ts'
import type { RelayReport } from '../../../shared/mail/http/relayReport.ts'
import { messageIdHash } from '../../../shared/mail/threading.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { recordEvents } from '../../events/events.ts'
import { hasBouncedForSure, hashRange, recordBounce } from './bounces.ts'
import { recordComplaint } from './complaints.ts'

/** Identifies the sent copy of a message to which a mail relay's report belongs. */
type Copy = {
  message_row: string
  project_id: string
  message_id: string
  address: string
  state: string
  error: string | null
  inbox: string
}

const COPY = `
  select r.message_row, m.project_id, m.message_id, r.address, r.state, r.error, p.email_address as inbox
  from outbound_recipients r join messages m on m.row = r.message_row join projects p on p.id = m.project_id`
/**
 * Sets the maximum number of sent copies of messages (each recipient gets one) that a query reads for one id of a
 * relay, or for one beginning of a hash.
 */
const COPIES_MAX = 500

/**
 * Records a bounce or a complaint that a mail relay has reported. The caller has already proven that the report is
 * authentic. A repeated report changes nothing.
 * @param domain limits the report to mail of this domain. Null means that the relay may report about mail of any
 * domain.
 * @returns false if the report fits no sent copy of a message, or if the report is already recorded.
 */
export async function recordRelayReport(
  pool: Pool,
  report: RelayReport,
  domain: string | null,
): Promise<boolean> {
  const copy = await findCopy(pool, report)
  if (copy === null || (domain !== null && domainOf(copy.inbox) !== domain)) return false
  const { message_row: messageRow, project_id: projectId, message_id: messageId, address } = copy
  const { detail, status } = report
  if (report.kind === 'complaint') return recordComplaint(pool, { messageRow, address, detail })
  if (hasBouncedForSure(copy)) return false
  const failed = { addresses: [address], action: 'failed', status, diagnostic: detail } as const
  return transaction(pool, async (db) => {
    const events = await recordBounce(db, projectId, {
      isReport: true,
      messageIds: [],
      recipients: [{ ...failed, addresses: [address] }],
      proof: { messageId, address },
    })
    await recordEvents(db, events)
    return events.length > 0
  })
}

/**
 * Finds the sent copy of a message about which a relay reports. The function first tries the relay's id from the 250
 * reply, then the Message-ID, and then the envelope sender of the copy (VERP).
 */
async function findCopy(pool: Pool, report: RelayReport): Promise<Copy | null> {
  const { address, relayIds, from, messageIds, returnPaths } = report
  const isMeant = (copy: Copy) => addressKey(copy.address) === addressKey(address)
  const byRelay = await copies(pool, `${COPY} where r.relay_id = any ($1)`, [relayIds])
  const named = byRelay.find(isMeant)
  if (named !== undefined) return named
  const hashes = messageIds.map(messageIdHash)
  const byMessage = await copies(
    pool,
    `${COPY} where p.email_address = $1 and m.message_id_hash = any ($2)`,
    [addressKey(from), hashes],
  )
  const sent = byMessage.find(isMeant)
  if (sent !== undefined) return sent
  for (const path of returnPaths) {
    const tag = readBounceTag(path)
    if (tag === null) continue
    const inbox = path.replace(/\+[^@]*(?=@)/, '')
    const found = await copies(
      pool,
      `${COPY} where p.email_address = $1 and m.message_id_hash between $2 and $3`,
      [addressKey(inbox), ...hashRange(tag.hash)],
    )
    const tagged = found.find(isMeant)
    if (tagged !== undefined) return tagged
  }
  return null
}

async function copies(db: Queryable, text: string, values: unknown[]): Promise<Copy[]> {
  const { rows } = await db.query<Copy>(`${text} limit ${COPIES_MAX}`, values)
  return rows
}
