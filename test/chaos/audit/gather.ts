import { createHash } from 'node:crypto'
import pg from 'pg'
import { parseAbi, parseEventLogs } from 'viem'
import { devnetClient } from '../../../workers/devnet/contracts.ts'
import { createClient } from '../../support/service.ts'
import { payTo, SEPOLIA } from '../../support/till/devnetPayment.ts'
import type { Setting } from '../setting.ts'
import type { Evidence, ListedMessage, UsedAuthorization } from './evidence.ts'
import type { Ledger } from './ledger.ts'

const EVENTS = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

/**
 * Gathers the evidence for the audit from the API, the smarthost, the chain, the webhook receiver and the database.
 */
export async function gather(setting: Setting, ledger: Ledger): Promise<Evidence> {
  const { seller, peer, purse } = setting
  const [sellerInbox, peerInbox, chain, vault, { purchases, mandate, ...rows }] = await Promise.all(
    [
      listInbox(setting, seller.key),
      listInbox(setting, peer.key),
      readChain(setting),
      readVault(setting, ledger),
      readRows(setting),
    ],
  )
  return {
    inboxes: { [seller.inbox]: sellerInbox, [peer.inbox]: peerInbox },
    mailFaults: {
      killedMs: [...setting.mailWorkersKilledMs],
      cutMs: [...setting.links.smarthost.endedMs],
    },
    sunk: setting.sink.mails.map(({ email, to, raw, beganMs }) => ({
      beganMs,
      messageId: email.messageId ?? '',
      to,
      subject: email.subject ?? '',
      contentHash: createHash('sha256').update(raw).digest('hex'),
    })),
    used: chain.used,
    transferCount: chain.transferCount,
    purse: { address: purse.address, paidAtomic: chain.paidAtomic, purchases, mandate },
    vault,
    delivered: setting.shop.delivered(),
    ...rows,
  }
}

async function listInbox({ directApiUrl }: Setting, key: string): Promise<ListedMessage[]> {
  const client = createClient(directApiUrl, key)
  const messages: ListedMessage[] = []
  for (let token: string | undefined, first = true; first || token !== undefined; first = false) {
    const page = token === undefined ? '' : `&pageToken=${encodeURIComponent(token)}`
    const { status, body } = await client.get(`/v0/messages?limit=100${page}`)
    if (status !== 200) throw new Error(`the inbox was answered ${status}`)
    messages.push(...body.messages)
    token = body.nextPageToken
  }
  return messages
}

async function readChain({
  devnet,
  purse,
}: Setting): Promise<
  Pick<Evidence, 'used' | 'transferCount'> & Pick<Evidence['purse'], 'paidAtomic'>
> {
  const client = devnetClient(devnet.rpcUrl)
  const raw = await client.getLogs({ address: SEPOLIA.usdcAddress, fromBlock: 0n })
  const logs = parseEventLogs({ abi: EVENTS, logs: raw })
  const all = logs.flatMap((log) => (log.eventName === 'Transfer' ? [log] : []))
  const transfers = all.filter(({ args }) => args.to.toLowerCase() === payTo.toLowerCase())
  const paid = all.filter(({ args }) => args.from.toLowerCase() === purse.address)
  const used = logs.flatMap((log): UsedAuthorization[] => {
    if (log.eventName !== 'AuthorizationUsed') return []
    const { authorizer, nonce } = log.args
    // The token contract FiatTokenV2 logs the Transfer event right after the event of the authorization, so the
    // transfer is in the next log entry.
    const transfer = all.find(
      ({ transactionHash, logIndex }) =>
        transactionHash === log.transactionHash && logIndex === log.logIndex + 1,
    )
    return [
      {
        nonce: nonce.toLowerCase(),
        payer: authorizer,
        txHash: log.transactionHash,
        amountAtomic: transfer?.args.value.toString() ?? null,
      },
    ]
  })
  const paidAtomic = String(paid.reduce((sum, { args }) => sum + args.value, 0n))
  return { used, transferCount: transfers.length, paidAtomic }
}

async function readVault(
  { directApiUrl, seller }: Setting,
  ledger: Ledger,
): Promise<Evidence['vault']> {
  const client = createClient(directApiUrl, seller.key)
  const held: Evidence['vault'] = {}
  for (const { name } of ledger.vault) {
    const { status, body } = await client.get(`/v0/vault/${encodeURIComponent(name)}`)
    if (status !== 200 && status !== 404) throw new Error(`the vault was answered ${status}`)
    held[name] = status === 200 ? body.data.value : null
  }
  return held
}

type Rows = Pick<
  Evidence,
  'payments' | 'newestEvent' | 'deliveryStatus' | 'jobs' | 'lockedJobs' | 'openRows'
> &
  Pick<Evidence['purse'], 'purchases' | 'mandate'>

/** Lists the database rows whose work is not finished, and tells for each row whether a job exists. */
const OPEN_ROWS = `
  with open as (
    select 'parse_inbound:' || id as key, 'inbound mail ' || id as name from inbound_mails where state = 'accepted'
    union all
    select 'send_mail:' || message_row, 'sent message ' || message_row from outbound_mails where state <> 'done'
    union all
    select 'deliver_webhook:' || id, 'webhook ' || id from webhook_deliveries where status <> 'delivered'
    union all
    select 'settle_payment:' || id, 'payment ' || id from payments where state = 'verified'
    union all
    select 'check_payment:' || id, 'check ' || id from payment_checks where state = 'open'
    union all
    select 'buy:' || id, 'purchase ' || id from purchases where ended_at is null and state <> 'waiting'
  )
  select name as row, exists (select from graphile_worker.jobs j where j.key = open.key) or exists (
    select from graphile_worker._private_jobs b, json_array_elements_text(b.payload -> 'inboundIds') id
    where 'parse_inbound:' || id = open.key) as "hasJob" from open`

async function readRows({ database }: Setting): Promise<Rows> {
  const client = new pg.Client({ connectionString: database.directUrl() })
  client.on('error', () => {})
  await client.connect()
  try {
    const list = async (text: string) => (await client.query(text)).rows
    const jobs = await list(
      `select task_identifier || ' ' || id || coalesce(' (' || key || ')', ' (no key)') ||
                case when attempts > 0 then ', attempt ' || attempts || ' of ' || max_attempts else '' end ||
                coalesce(', ' || left(last_error, 200), '') as name,
              locked_at is not null as locked from graphile_worker.jobs order by id`,
    )
    const events = await list(
      `select p.email_address as inbox, s.last_seq::int as seq from event_streams s
       join projects p on p.id = s.project_id`,
    )
    const sent = await list(
      `select message_id, delivery_status from messages where direction = 'sent'`,
    )
    return {
      payments: await list(
        `select id, lower(authorization_nonce) as nonce, state as status, tx_hash as "txHash" from payments`,
      ),
      purchases: await list(
        `select id, idempotency_key as key, state, ended_at is not null as ended, money, lower(nonce) as nonce,
           amount_atomic::text as "amountAtomic", tx_hash as "txHash"
         from purchases where kind = 'payment'`,
      ),
      mandate: (
        await list(
          `select total_atomic::text as limit, reserved_atomic::text as reserved, spent_atomic::text as spent,
             released_atomic::text as released from mandates`,
        )
      )[0],
      newestEvent: Object.fromEntries(events.map(({ inbox, seq }) => [inbox, seq])),
      deliveryStatus: Object.fromEntries(
        sent.map(({ message_id, delivery_status }) => [message_id, delivery_status]),
      ),
      jobs: jobs.map(({ name }) => name),
      lockedJobs: jobs.filter(({ locked }) => locked).map(({ name }) => name),
      openRows: await list(OPEN_ROWS),
    }
  } finally {
    await client.end()
  }
}

/** Makes retries of mail, webhooks and purchases due immediately, as an operator can do. */
export async function hurry({ database }: Setting): Promise<void> {
  const client = new pg.Client({ connectionString: database.directUrl() })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(
      `update outbound_recipients set next_attempt_at = clock_timestamp() where state in ('queued', 'deferred')`,
    )
    await client.query(
      `update outbound_mails set next_attempt_at = clock_timestamp() where state <> 'done'`,
    )
    await client.query(
      `select graphile_worker.reschedule_jobs(array(
         select id from graphile_worker.jobs
         where task_identifier in ('send_mail', 'deliver_webhook', 'buy') and run_at > now() and locked_at is null
       ), run_at := now())`,
    )
  } finally {
    await client.end()
  }
}
