import type { Cursor } from '../../shared/cursor.ts'
import type { Reveal } from '../../shared/vault/bounds/allowedHosts.ts'
import type { Bounds } from '../../shared/vault/bounds/bounds.ts'
import type { CredentialData, CredentialType } from '../../shared/vault/credential.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import {
  type Actor,
  AUDIT_COLUMNS,
  auditArrays,
  auditValues,
  setOutcome,
} from '../account/audit.ts'
import { conditions, holds } from '../conditions.ts'
import type { Queryable } from '../db.ts'
import type { Failed, StoredCredential } from './credentials.ts'
import { BOUNDS_COLUMNS, type BoundsRow, openData, toBounds } from './credentialVersions.ts'

/** Describes a vault credential with its decrypted secret. */
export type OpenCredential = StoredCredential & {
  data: CredentialData
  hasTotp: boolean
  /** Tells whether the version that was read is the current version of the credential. */
  current: boolean
}

type Row = BoundsRow & {
  id: string
  current_version: number
  version: number
  type: CredentialType
  metadata: Record<string, unknown>
  has_totp: boolean
  key_id: string
  wrapped_key: Buffer
  ciphertext: Buffer
  expires_at: Date | null
  last_used_at: Date | null
  last_rotated_at: Date | null
  created_at: Date
  version_created_at: Date
  read_at: Date
  outcome: 'ok' | 'expired' | 'refused'
  reveal: Reveal
  withheld: boolean
}

/**
 * Writes an SQL statement that reads versions of credentials and writes their audit entries. Therefore no secret leaves
 * PostgreSQL without an audit entry. An older version expires together with the current version, because it could
 * otherwise bypass the expiry. The SQL does not update `last_used_at` while another reader updates it, so that readers
 * of one credential do not wait for each other.
 *
 * The SQL parameters $1 to $6 are the columns of the audit entries. Parameter $7 tells whether the owner reads, and $8
 * holds the versions. Each parameter is an array with one element for each read.
 */
const readStatement = (
  version: string,
  { needs, touches, reveals }: { needs: string; touches: boolean; reveals: boolean },
) => `
  with given as (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[], $8::int[])
      with ordinality g (project_id, actor, request_id, action, subject, detail, is_owner, version, n)
  ), found as (
    select g.n, c.row, c.id, c.version as current_version, c.last_used_at, c.last_rotated_at, c.created_at, v.version, v.type,
           v.metadata, v.has_totp, v.key_id, v.wrapped_key, v.ciphertext, v.created_at as version_created_at,
           ${BOUNDS_COLUMNS}, c.reveal, w.withheld, x.expires_at, clock_timestamp() as read_at,
           case when x.expires_at <= clock_timestamp() then 'expired' when w.withheld or not (${needs}) then 'refused'
                else 'ok' end as outcome
    from given g
    join credentials c on c.project_id = g.project_id and c.name = g.subject
    join credential_versions v on v.credential_row = c.row and v.version = ${version}
    join credential_versions n on n.credential_row = c.row and n.version = c.version
    cross join lateral (
      select case when n.expires_at <= clock_timestamp() then n.expires_at else v.expires_at end as expires_at) x
    cross join lateral (select ${reveals ? "c.reveal = 'owner' and not g.is_owner" : 'false'} as withheld) w
  ),${touches ? TOUCH : ''} audited as (
    insert into audit_log (${AUDIT_COLUMNS})
    select g.project_id, g.actor, g.request_id, g.action, g.subject, g.detail, coalesce(f.outcome, 'not_found')
    from given g left join found f using (n) order by g.n
    returning row as audit_row
  ), numbered as (
    -- The audit entries have row numbers in the order of the reads.
    select audit_row, row_number() over (order by audit_row) as n from audited
  )
  select a.audit_row, f.* from numbered a left join found f using (n) order by a.n`

const TOUCH = `
  free as (
    select c.row from credentials c where c.row in (select row from found where outcome = 'ok')
    for no key update of c skip locked
  ), touched as (
    update credentials c set last_used_at = clock_timestamp() from free where c.row = free.row
  ),`

const READS = {
  'vault.get': readStatement('c.version', { needs: 'true', touches: true, reveals: true }),
  'vault.totp': readStatement('c.version', { needs: 'v.has_totp', touches: true, reveals: true }),
  'vault.version_get': readStatement('g.version', { needs: 'true', touches: false, reveals: true }),
  // The callers of these two reads may still refuse the request. If they accept it, they call `recordUsed`.
  'vault.use': readStatement('c.version', { needs: 'true', touches: false, reveals: false }),
  'vault.sign': readStatement('c.version', { needs: 'true', touches: false, reveals: false }),
} as const

/**
 * Records that a request or a signature has used a credential. If another use is updating the time of the last use, the
 * function leaves the update to that use.
 */
export async function recordUsed(db: Queryable, projectId: string, name: string): Promise<void> {
  await db.query({
    name: 'record-credential-used',
    text: `with free as (
             select row from credentials where project_id = $1 and name = $2 for no key update skip locked
           )
           update credentials c set last_used_at = clock_timestamp() from free where c.row = free.row`,
    values: [projectId, name],
  })
}

/** Reads and decrypts the current version or a given version of a credential. */
export async function openCredential(
  db: Queryable,
  target: CredentialRead & { keyring: Keyring; action: keyof typeof READS },
): Promise<{ kind: 'ok'; credential: OpenCredential; auditRow: string } | Failed> {
  const [read] = await readCredentials(db, target.action, [target])
  return await openRead(db, target, read!)
}

/** Describes one read of a credential: the reader, the name and the version. */
export type CredentialRead = {
  actor: Actor
  name: string
  /** Tells whether the owner reads the credential at the console. */
  isOwner: boolean
  /**
   * Holds the version of the credential that the caller wants to read. If it is absent, the caller reads the current
   * version.
   */
  version?: number
  /** Holds the detail for the audit entry about the read of a credential. */
  detail?: string
}

/** Describes the result of reading a credential, before the decryption of its secret. */
export type SealedRead = { audit_row: string } & (Row | { [Key in keyof Row]: null })

/**
 * Reads credentials of any projects in one SQL statement, and writes an audit entry for each read. @returns one result
 * for each item of `reads`, in the same order.
 */
export async function readCredentials(
  db: Queryable,
  action: keyof typeof READS,
  reads: readonly CredentialRead[],
): Promise<SealedRead[]> {
  const entries = reads.map(({ actor, name, version, detail }) => {
    const shown = version === undefined ? detail : `version ${version}`
    return auditValues(actor, {
      action,
      subject: name,
      ...(shown === undefined ? {} : { detail: shown }),
    })
  })
  const { rows } = await db.query<SealedRead>({
    name: action,
    text: READS[action],
    values: [
      ...auditArrays(entries),
      reads.map(({ isOwner }) => isOwner),
      reads.map(({ version }) => version ?? null),
    ],
  })
  return rows
}

/** Decrypts a credential that was read. If this fails, the audit entry about the read gets the outcome `failed`. */
export async function openRead(
  db: Queryable,
  { actor, name, version, keyring }: CredentialRead & { keyring: Keyring },
  row: SealedRead,
): Promise<{ kind: 'ok'; credential: OpenCredential; auditRow: string } | Failed> {
  if (row.id === null) return { kind: 'not_found' }
  if (row.outcome === 'expired') return { kind: 'expired', expiresAt: row.expires_at! }
  if (row.outcome === 'refused') return { kind: row.withheld ? 'withheld' : 'refused' }
  try {
    const data = openData(keyring, actor.projectId, name, row)
    const credential = toOpenCredential(name, row, data, version === undefined)
    return { kind: 'ok', credential, auditRow: row.audit_row }
  } catch (error) {
    await setOutcome(db, row.audit_row, 'failed')
    throw error
  }
}

/**
 * Returns the current version of a credential for a worker process. The function writes no audit entry, because the
 * request that uses the credential already has one.
 * @returns null if the credential is deleted or has expired.
 */
export async function readForUse(
  db: Queryable,
  { projectId, name, keyring }: { projectId: string; name: string; keyring: Keyring },
): Promise<Pick<OpenCredential, 'type' | 'data' | 'metadata' | keyof Bounds> | null> {
  const { rows } = await db.query<Row>({
    name: 'read-for-use',
    text: `select v.version, v.type, v.metadata, ${BOUNDS_COLUMNS}, v.key_id, v.wrapped_key, v.ciphertext
           from credentials c join credential_versions v on v.credential_row = c.row and v.version = c.version
           where c.project_id = $1 and c.name = $2 and (v.expires_at is null or v.expires_at > clock_timestamp())`,
    values: [projectId, name],
  })
  const row = rows[0]
  if (row === undefined) return null
  const { type, metadata } = row
  return { type, metadata, ...toBounds(row), data: openData(keyring, projectId, name, row) }
}

const toOpenCredential = (
  name: string,
  row: Row,
  data: CredentialData,
  isUse: boolean,
): OpenCredential => ({
  id: row.id,
  name,
  version: row.version,
  type: row.type,
  metadata: row.metadata,
  expiresAt: row.expires_at,
  lastUsedAt: isUse ? row.read_at : row.last_used_at,
  lastRotatedAt: row.last_rotated_at,
  createdAt: isUse ? row.created_at : row.version_created_at,
  data,
  hasTotp: row.has_totp,
  current: row.version === row.current_version,
  ...toBounds(row),
  reveal: row.reveal,
})

/** Finds one credential without its secret. @returns null if the project has no such credential. */
export async function findCredential(
  db: Queryable,
  { projectId, name }: { projectId: string; name: string },
): Promise<StoredCredential | null> {
  const { rows } = await db.query<Row>({
    name: 'find-credential',
    text: `select c.id, c.version, v.type, v.metadata, v.expires_at, c.last_used_at, c.last_rotated_at, c.created_at,
                  c.reveal, ${BOUNDS_COLUMNS}
           from credentials c join credential_versions v on v.credential_row = c.row and v.version = c.version
           where c.project_id = $1 and c.name = $2`,
    values: [projectId, name],
  })
  return rows[0] === undefined ? null : toListed(name, rows[0])
}

const toListed = (name: string, row: Row): StoredCredential => ({
  id: row.id,
  name,
  version: row.version,
  type: row.type,
  metadata: row.metadata,
  expiresAt: row.expires_at,
  lastUsedAt: row.last_used_at,
  lastRotatedAt: row.last_rotated_at,
  createdAt: row.created_at,
  ...toBounds(row),
  reveal: row.reveal,
})

/**
 * Limits the bytes of metadata (JSON) and bounds (limits on use) in one page of credentials. For ten thousand large
 * credentials, the metadata would have 160 MB, and the bounds 370 MB.
 */
const PAGE_BYTES = 8 * 1024 * 1024

export type CredentialFilter = {
  projectId: string
  /**
   * Selects only credentials that have expired or will expire within this time, with the earliest expiry first. Null
   * selects all credentials.
   */
  expiringWithinMs: number | null
  /** Selects credentials that have the given text in their name. */
  name?: string
  type?: CredentialType
  cursor: Cursor | null
  limit: number
}

/** Returns one page of credentials without their secrets, newest first, and tells whether more credentials follow. */
export async function listCredentials(
  db: Queryable,
  { projectId, expiringWithinMs, name, type, cursor, limit }: CredentialFilter,
): Promise<{ credentials: (StoredCredential & { row: bigint })[]; more: boolean }> {
  const byExpiry = expiringWithinMs !== null
  const order = byExpiry ? 'c.expires_at, c.row' : 'c.created_at desc, c.row desc'
  const values: unknown[] = [
    projectId,
    cursor === null ? (byExpiry ? '-infinity' : 'infinity') : new Date(cursor.atMs),
    cursor?.row ?? 0n,
    limit + 1,
    ...(byExpiry ? [expiringWithinMs] : []),
  ]
  const tests = conditions(values, [
    [holds('c.name'), name],
    ['v.type = ?', type],
  ])
  const { rows } = await db.query<Row & { name: string; row: string; found: number }>(
    `
      with page as (
        select c.row, row_number() over (order by ${order}) as n, v.metadata_bytes + v.bounds_bytes as bytes
        from credentials c join credential_versions v on v.credential_row = c.row and v.version = c.version
        where c.project_id = $1 and ${
          byExpiry
            ? `(c.expires_at, c.row) > ($2::timestamptz, $3::bigint)
               and c.expires_at <= clock_timestamp() + $5::float8 * interval '1 millisecond'`
            : '(c.created_at, c.row) < ($2::timestamptz, $3::bigint)'
        } ${tests}
        order by ${order} limit $4
      )
      select c.row, c.id, c.name, c.version, v.type, v.metadata, v.expires_at, c.last_used_at, c.last_rotated_at,
             c.created_at, c.reveal, ${BOUNDS_COLUMNS}, s.found
      from (
        select row, n, count(*) over ()::int as found,
               sum(bytes) over (order by n) - bytes as bytes_before
        from page
      ) s
      join credentials c on c.row = s.row
      join credential_versions v on v.credential_row = c.row and v.version = c.version
      where s.bytes_before < ${PAGE_BYTES} order by s.n`,
    values,
  )
  const credentials = rows
    .slice(0, limit)
    .map((row) => ({ row: BigInt(row.row), ...toListed(row.name, row) }))
  return { credentials, more: credentials.length < (rows[0]?.found ?? 0) }
}
