/**
 * Reads statistics of the whole service from small tables and partial indexes. The queries are so fast that the service
 * can repeat them every few seconds.
 */
import { IDLE_MAX_S } from '../blobs/sweepBlobs.ts'
import type { Queryable } from '../db.ts'
import { IS_LIVING, SILENT_POOLS } from '../queue/workerPools.ts'
import { isHere, isOnThisChain } from '../till/watch/chainStatus.ts'

export const JOB_STATES = ['ready', 'delayed', 'running', 'failed'] as const
export type JobState = (typeof JOB_STATES)[number]

/** Adds the state of each row of graphile_worker.jobs as `s.state`. */
export const JOB_STATE = `
  cross join lateral (
    select case when locked_at is not null then 'running'
                when attempts >= max_attempts then 'failed'
                when run_at > clock_timestamp() then 'delayed'
                else 'ready' end as state) s`

/**
 * Counts the jobs of one task in one state. The field `oldestDueS` is the number of seconds since the oldest counted
 * job was due.
 */
export type JobCount = { task: string; state: JobState; count: number; oldestDueS: number }

/** Counts jobs by task and state. A job in the state `failed` has used up its attempts. */
export async function countJobs(db: Queryable): Promise<JobCount[]> {
  const { rows } = await db.query<{
    task: string
    state: JobState
    count: number
    oldest_due_s: number
  }>({
    name: 'count-jobs',
    text: `
      select task_identifier as task, state, count(*)::int as count,
             greatest(0, extract(epoch from clock_timestamp() - min(run_at)))::float8 as oldest_due_s
      from graphile_worker.jobs ${JOB_STATE}
      group by task_identifier, state`,
  })
  return rows.map((row) => ({
    task: row.task,
    state: row.state,
    count: row.count,
    oldestDueS: row.oldest_due_s,
  }))
}

/** Limits the number of projects with a gas metric, because each project is a separate time series. */
const GAS_PROJECTS_MAX = 20

const BLOBS_COUNTED = 10_000

/** Describes the unfinished work of the service, and the state of its connection to the chain. */
export type Backlog = {
  /** Counts the outbound mails that have a pending recipient. */
  outboundMails: number
  /** Counts the verified payments that the service has not seen on the chain yet. */
  verifiedPayments: number
  /** Counts the settled payments in blocks that are not final, because a reorganisation can still undo them. */
  unfinalizedPayments: number
  pendingDeliveries: number
  /** Counts the signed transactions that are not in a block yet. */
  openTransactions: number
  workerPools: number
  /** Counts the live worker pools by name. */
  pools: Record<string, number>
  /** Counts the names of worker pools that have a hanging process. */
  silentPools: number
  /**
   * Holds the age in seconds of the oldest payment that waits for its transaction to appear on the chain. The value 0
   * means that no payment waits.
   */
  oldestVerifiedS: number
  /** Counts the open transactions of each gas wallet, because each of them occupies a nonce of the wallet. */
  wallets: { wallet: string; open: number }[]
  /** Lists the projects that used the most gas today, at most 20. */
  gas: { projectId: string; gas: number }[]
  /** Lists the projects whose purses signed calls for the most gas today, at most 20. */
  purseGas: { projectId: string; gas: number }[]
  /**
   * Counts the seconds since a payment worker last called the RPC node. Null means that no payment worker has called
   * the RPC node.
   */
  rpcReportAgeS: number | null
  /** Tells whether the RPC node responded to the last call of a payment worker. */
  rpcAnswers: boolean
  headNumber: number | null
  /**
   * Counts the objects in the object store that no database row names, up to 20,000. The service removes them after
   * some time. The field `blobsOldestDueS` is the number of seconds since the removal of the oldest such object was
   * due.
   */
  blobsWaiting: number
  blobsOldestDueS: number
}

/** Reads the unfinished work of the service. */
export async function readBacklog(db: Queryable): Promise<Backlog> {
  const { rows } = await db.query<{
    outbound_mails: number
    verified: number
    unfinalized: number
    deliveries: number
    transactions: number
    worker_pools: number
    pools: Record<string, number>
    silent_pools: number
    oldest_verified_s: number
    wallets: { wallet: string; open: number }[]
    gas: { projectId: string; gas: number }[]
    purse_gas: { projectId: string; gas: number }[]
    age_s: number | null
    answers: boolean | null
    head_number: string | null
    blobs_waiting: number
    blobs_oldest_due_s: number
  }>({
    name: 'read-backlog',
    text: `
      select (select count(*)::int from outbound_mails
                where state <> 'done' and not (attempt = 0 and next_attempt_at > clock_timestamp())) as outbound_mails,
             (select count(*)::int from payments p where state = 'verified' and ${isHere('p')}) as verified,
             (select count(*)::int from payments where state = 'settled' and finalized_at is null) as unfinalized,
             (select count(*)::int from webhook_deliveries where status = 'pending') as deliveries,
             (select count(*)::int from chain_transactions t where state = 'open' and ${isOnThisChain('t')}) as transactions,
             (select count(*)::int from worker_pools w where ${IS_LIVING}) as worker_pools,
             (select coalesce(json_object_agg(pool_name, living), '{}') from (
                select pool_name, count(*) filter (where ${IS_LIVING}) as living
                from worker_pools w group by pool_name) named) as pools,
             (select count(*)::int from (${SILENT_POOLS}) silent) as silent_pools,
             (select coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8
              from payments p where state = 'verified' and ${isHere('p')}) as oldest_verified_s,
             (select coalesce(json_agg(w), '[]') from (
                select g.address as wallet, count(t.hash)::int as open
                from gas_wallets g left join chain_transactions t
                  on t.chain_id = g.chain_id and t.wallet = g.address and t.state = 'open'
                where ${isOnThisChain('g')} group by g.address) w) as wallets,
             (select coalesce(json_agg(b), '[]') from (
                select project_id as "projectId", gas from settlement_budgets
                where day = (clock_timestamp() at time zone 'UTC')::date and gas > 0
                order by gas desc limit ${GAS_PROJECTS_MAX}) b) as gas,
             (select coalesce(json_agg(b), '[]') from (
                select project_id as "projectId", gas from purse_gas
                where day = (clock_timestamp() at time zone 'UTC')::date
                order by gas desc limit ${GAS_PROJECTS_MAX}) b) as purse_gas,
             (select count(*)::int from (
                (select from blobs where idle_since is not null limit ${BLOBS_COUNTED})
                union all (select from dead_blobs limit ${BLOBS_COUNTED})) b) as blobs_waiting,
             (select coalesce(greatest(0, extract(epoch from clock_timestamp() - least(
                (select min(idle_since) + make_interval(secs => ${IDLE_MAX_S}) from blobs where idle_since is not null),
                (select min(died_at) from dead_blobs)))), 0)::float8) as blobs_oldest_due_s,
             c.age_s, c.answers, c.head_number
      from (select 1) one left join (
        select extract(epoch from clock_timestamp() - checked_at)::float8 as age_s, rpc_error is null as answers,
               head_number
        from chain_status) c on true`,
  })
  const row = rows[0]!
  return {
    outboundMails: row.outbound_mails,
    verifiedPayments: row.verified,
    unfinalizedPayments: row.unfinalized,
    pendingDeliveries: row.deliveries,
    openTransactions: row.transactions,
    workerPools: row.worker_pools,
    silentPools: row.silent_pools,
    pools: row.pools,
    oldestVerifiedS: row.oldest_verified_s,
    wallets: row.wallets,
    gas: row.gas,
    purseGas: row.purse_gas,
    rpcReportAgeS: row.age_s,
    rpcAnswers: row.answers ?? false,
    headNumber: row.head_number === null ? null : Number(row.head_number),
    blobsWaiting: row.blobs_waiting,
    blobsOldestDueS: row.blobs_oldest_due_s,
  }
}
