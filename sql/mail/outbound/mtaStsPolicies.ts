import type { MtaStsPolicy } from '../../../shared/mail/mtaSts.ts'
import type { Queryable } from '../../db.ts'

/**
 * Describes a stored MTA-STS policy. The field `id` is the policy id that the domain's TXT record held at the fetch of
 * the policy.
 */
export type StoredPolicy = MtaStsPolicy & { id: string }

/**
 * Finds the unexpired MTA-STS policy of a domain. @returns null if the domain has no stored and unexpired MTA-STS
 * policy.
 */
export async function findMtaStsPolicy(
  db: Queryable,
  domain: string,
): Promise<StoredPolicy | null> {
  const { rows } = await db.query<StoredPolicy>({
    name: 'find-mta-sts-policy',
    text: `select policy_id as id, mode, mx from mta_sts_policies where domain = $1 and expires_at > clock_timestamp()`,
    values: [domain],
  })
  return rows[0] ?? null
}

/**
 * Stores an MTA-STS policy with its time of expiry. The stored policy replaces the domain's previous MTA-STS policy.
 */
export async function storeMtaStsPolicy(
  db: Queryable,
  domain: string,
  { id, mode, mx, maxAgeS }: StoredPolicy & { maxAgeS: number },
): Promise<void> {
  await db.query({
    name: 'store-mta-sts-policy',
    text: `
      insert into mta_sts_policies (domain, policy_id, mode, mx, expires_at)
      values ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5))
      on conflict (domain) do update set policy_id = excluded.policy_id, mode = excluded.mode, mx = excluded.mx,
        expires_at = excluded.expires_at`,
    values: [domain, id, mode, mx, maxAgeS],
  })
}

/** Deletes expired MTA-STS policies. */
export async function deleteExpiredPolicies(db: Queryable): Promise<void> {
  await db.query('delete from mta_sts_policies where expires_at < clock_timestamp()')
}
