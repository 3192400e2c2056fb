import { randomBytes } from 'node:crypto'
import type { Cursor } from '../../../shared/cursor.ts'
import type { DomainStatus, Findings } from '../../../shared/mail/mailDomain.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { pageStart } from '../../pageStart.ts'
import { addJob, hasNoJob } from '../../queue/jobs.ts'
import { createDkimKey, deleteDkimKeys, SIGNING_KEYS } from './dkimKeys.ts'
import { revokeInboundSecrets } from './inboundSecrets.ts'

/** Describes a tenant's mail domain. */
export type MailDomain = {
  domain: string
  row: bigint
  token: string
  /** Holds the selector and the DNS record of the newest DKIM key, which `bun run dkim:new` may have made. */
  dkimSelector: string
  dkimRecord: string
  /** Holds the previous DKIM key, which also signs. Null means that the domain has only one DKIM key. */
  previousDkim: { selector: string; record: string } | null
  status: DomainStatus
  findings: Findings
  createdAt: Date
  checkedAt: Date | null
  verifiedAt: Date | null
  /**
   * Holds the time since which every check of the domain has missed required DNS records or found them wrong. Null
   * means that the last check found all of them.
   */
  wantingSince: Date | null
}

/** Reports that a mail domain cannot be deleted, because projects have inbox addresses in the domain. */
export class DomainInUseError extends Error {}

type DomainRow = {
  domain: string
  row: string
  token: string
  dkim_selector: string
  dkim_record: string
  keys: { selector: string; record: string }[] | null
  status: DomainStatus
  findings: Findings
  created_at: Date
  checked_at: Date | null
  verified_at: Date | null
  wanting_since: Date | null
}

const toDomain = (row: DomainRow): MailDomain => ({
  domain: row.domain,
  row: BigInt(row.row),
  token: row.token,
  dkimSelector: row.keys?.[0]?.selector ?? row.dkim_selector,
  dkimRecord: row.keys?.[0]?.record ?? row.dkim_record,
  previousDkim: row.keys?.[1] ?? null,
  status: row.status,
  findings: row.findings,
  createdAt: row.created_at,
  checkedAt: row.checked_at,
  verifiedAt: row.verified_at,
  wantingSince: row.wanting_since,
})

/** Selects mail domains (alias d), each with its DKIM keys that sign, the newest first. */
const SELECT = `select d.*, (
    select json_agg(json_build_object('selector', k.selector, 'record', k.record) order by k.row desc)
    from (select * from dkim_keys where domain = d.domain order by row desc limit ${SIGNING_KEYS}) k) as keys
  from mail_domains d`

/**
 * Adds a mail domain with an ownership token and a DKIM key, and queues the first check of the mail domain. @returns
 * null if the mail domain already exists.
 */
export async function addMailDomain(
  pool: Pool,
  keyring: Keyring,
  domain: string,
): Promise<MailDomain | null> {
  return transaction(pool, async (db) => {
    const { selector, record } = await createDkimKey(db, keyring, domain)
    const { rows } = await db.query<DomainRow>(
      `insert into mail_domains (domain, token, dkim_selector, dkim_record) values ($1, $2, $3, $4)
       on conflict do nothing returning *, null as keys`,
      [domain, randomBytes(24).toString('hex'), selector, record],
    )
    if (rows[0] === undefined) {
      await deleteDkimKeys(db, domain, selector)
      return null
    }
    await queueCheck(db, domain)
    return toDomain(rows[0])
  })
}

/**
 * Queues the check of a mail domain. The new check replaces a check of the same domain that already waits in the queue.
 */
export async function queueCheck(db: Queryable, domain: string, runAt?: Date): Promise<void> {
  await addJob(db, {
    task: 'verify_domain',
    payload: { domain },
    key: `verify_domain:${domain}`,
    ...(runAt === undefined ? {} : { runAt }),
  })
}

/**
 * Sets how long after its last check a mail domain without a check in the queue counts as lost. The longest pause
 * between two checks is a day.
 */
const LOST_AFTER = '25 hours'
const LOST_BATCH = 100

/**
 * Queues the checks of mail domains that have no check in the queue, or only one that failed for good. A check can be
 * missing after an operator deleted its job. The service checks a failed domain only on request.
 * @returns the number of checks that the function queued again.
 */
export async function requeueLostChecks(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ domain: string }>(
    `select domain from mail_domains
     where status <> 'failed' and coalesce(checked_at, created_at) < clock_timestamp() - interval '${LOST_AFTER}'
       and ${hasNoJob("'verify_domain:' || domain")}
     order by domain limit ${LOST_BATCH}`,
  )
  for (const { domain } of rows) await queueCheck(pool, domain)
  return rows.length
}

/**
 * Tells whether a person of the console or the approver of a project has a mail address in a domain. If the service
 * hosted this domain, an agent could read this person's sign-in links and approval links.
 */
export async function hasPeopleAt(db: Queryable, domain: string): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>(
    `select exists (select from people where right(email, length($1) + 1) = '@' || $1)
         or exists (
           select from projects where deleted_at is null and lower(right(approver_email, length($1) + 1)) = '@' || $1) as has`,
    [domain],
  )
  return rows[0]!.has
}

/** Finds one mail domain. @returns null if the mail domain does not exist. */
export async function findMailDomain(db: Queryable, domain: string): Promise<MailDomain | null> {
  const { rows } = await db.query<DomainRow>(`${SELECT} where d.domain = $1`, [domain])
  return rows[0] === undefined ? null : toDomain(rows[0])
}

/** Returns the verified mail domains among the given domains. */
export async function findVerifiedDomains(
  db: Queryable,
  domains: readonly string[],
): Promise<string[]> {
  const { rows } = await db.query<{ domain: string }>({
    name: 'find-verified-domains',
    text: `select domain from mail_domains where domain = any ($1) and status = 'verified'`,
    values: [domains],
  })
  return rows.map(({ domain }) => domain)
}

/** Lists at most `limit` mail domains in the given states, in alphabetical order. */
export async function listServedDomains(
  db: Queryable,
  { states, limit }: { states: readonly DomainStatus[]; limit: number },
): Promise<MailDomain[]> {
  const { rows } = await db.query<DomainRow>(
    `${SELECT} where d.status = any ($1) order by d.domain limit $2`,
    [states, limit],
  )
  return rows.map(toDomain)
}

/** Lists the mail domains, newest first, with at most `limit` mail domains after the cursor. */
export async function listMailDomains(
  db: Queryable,
  { limit, cursor }: { limit: number; cursor: Cursor | null },
): Promise<MailDomain[]> {
  const { rows } = await db.query<DomainRow>(
    `${SELECT} where (d.created_at, d.row) < ($1::timestamptz, $2::bigint)
     order by d.created_at desc, d.row desc limit $3`,
    [...pageStart(cursor), limit],
  )
  return rows.map(toDomain)
}

/**
 * Records the result of a mail domain's check and queues the next check. If another check has recorded its result since
 * `checkedBefore`, either result may be the newer one. The function then records nothing and queues a new check.
 * @returns false if the function recorded nothing. This is also the case if somebody removed the mail domain during the
 * check, or removed it and added it again.
 */
export async function recordCheck(
  pool: Pool,
  check: {
    domain: string
    token: string
    /** Holds the time of the last check of the mail domain that was recorded when the present check began. */
    checkedBefore: Date | null
    status: DomainStatus
    findings: Findings
    wantingSince: Date | null
    recheckAt: Date | null
  },
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ checked_at: Date | null }>(
      'select checked_at from mail_domains where domain = $1 and token = $2 for no key update',
      [check.domain, check.token],
    )
    if (rows[0] === undefined) return false
    if (rows[0].checked_at?.getTime() !== check.checkedBefore?.getTime()) {
      await queueCheck(db, check.domain)
      return false
    }
    await db.query(
      `update mail_domains set status = $3, findings = $4, wanting_since = $5, checked_at = clock_timestamp(),
         verified_at = case when $3 = 'verified' then coalesce(verified_at, clock_timestamp()) else verified_at end
       where domain = $1 and token = $2`,
      [check.domain, check.token, check.status, JSON.stringify(check.findings), check.wantingSince],
    )
    if (check.recheckAt !== null) await queueCheck(db, check.domain, check.recheckAt)
    return true
  })
}

/**
 * Deletes a mail domain with its DKIM keys. @returns false if the mail domain does not exist. @throws
 * {DomainInUseError} if projects have inbox addresses in the mail domain.
 */
export async function deleteMailDomain(pool: Pool, domain: string): Promise<boolean> {
  return transaction(pool, async (db) => {
    // With this row lock, the deletion of a mail domain waits for a concurrent `createProject` with an address in this
    // domain. It then sees the new project.
    const locked = await db.query('select from mail_domains where domain = $1 for update', [domain])
    if (locked.rowCount === 0) return false
    const used = await db.query(
      `select from projects where split_part(email_address, '@', 2) = $1 and deleted_at is null limit 1`,
      [domain],
    )
    if (used.rowCount === 1) throw new DomainInUseError()
    await db.query('delete from mail_domains where domain = $1', [domain])
    await deleteDkimKeys(db, domain)
    await revokeInboundSecrets(db, domain)
    return true
  })
}

/**
 * Locks a verified mail domain against deletion during the creation of a project. @returns false if the mail domain is
 * not verified.
 */
export async function holdVerifiedDomain(db: Queryable, domain: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from mail_domains where domain = $1 and status = 'verified' for key share`,
    [domain],
  )
  return rowCount === 1
}
