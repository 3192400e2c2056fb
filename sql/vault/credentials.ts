import { canonicalJson } from '../../shared/canonicalJson.ts'
import { newCredentialId } from '../../shared/ids.ts'
import type { Reveal } from '../../shared/vault/bounds/allowedHosts.ts'
import { areWithin, type Bounds, effectiveBounds } from '../../shared/vault/bounds/bounds.ts'
import { type CredentialData, type CredentialType, hasTotp } from '../../shared/vault/credential.ts'
import {
  BrokenSealError,
  type Keyring,
  UnknownMasterKeyError,
} from '../../shared/vault/envelope.ts'
import { type Actor, auditInsert, auditValues, type Outcome, writeAudit } from '../account/audit.ts'
import { type Client, type Pool, type Queryable, transaction } from '../db.ts'
import {
  boundsBytes,
  boundsOf,
  boundsValues,
  openData,
  readVersion,
  sealData,
  type VersionRow,
} from './credentialVersions.ts'

/** Describes the content of a credential that a client stores under a name. */
export type CredentialContent = Bounds & {
  type: CredentialType
  data: CredentialData
  metadata: Record<string, unknown>
  expiresAt: Date | null
}

/** Describes a stored credential, without its secret. */
export type StoredCredential = Bounds & {
  id: string
  name: string
  version: number
  type: CredentialType
  metadata: Record<string, unknown>
  expiresAt: Date | null
  lastUsedAt: Date | null
  lastRotatedAt: Date | null
  createdAt: Date
  reveal: Reveal
}

/** Limits the number of credentials of one project. */
export const CREDENTIALS_MAX = 10_000
/** Limits the number of stored versions of one credential, including the current one. */
const VERSIONS_MAX = 10

/** Reports that a project already has {@link CREDENTIALS_MAX} credentials. */
export class TooManyCredentialsError extends Error {}

export type Target = { actor: Actor; keyring: Keyring; name: string; isOwner: boolean }
export type Locked = {
  row: string
  id: string
  version: number
  reveal: Reveal
  /** Tells whether the owner has set the bounds of the credential (the limits on the use of its secret). */
  isBounded: boolean
  isNew: boolean
}

const LOCKED = 'row, id, version, reveal, bounded_by_owner as "isBounded"'

/**
 * Describes the content of a credential as a caller gives it. A bound (a limit on use) that is absent gets its default
 * value. If the API key may not widen the bounds, an absent bound stays unchanged.
 */
export type GivenContent = Omit<CredentialContent, keyof Bounds> & Partial<Bounds>

/**
 * Creates a credential, or replaces its content with a new version. An API key may set any bounds (limits on use) for a
 * secret that it stores itself. It may not widen a bound if only the owner may read the credential, or if the owner has
 * set the bounds.
 * @param target.reveal says whether agents or only the owner may read the secret. If it is absent, an existing
 * credential keeps its setting, and a new credential gets the setting `agent`.
 * @returns null if the project is deleted. The result `withheld` means that only the owner may reveal this secret to
 * agents, or widen its bounds.
 * @throws {TooManyCredentialsError} if the project has too many credentials.
 */
export async function storeCredential(
  pool: Pool,
  target: Target & { content: GivenContent; reveal?: Reveal | undefined },
): Promise<StoredCredential | 'withheld' | null> {
  const { actor, name, isOwner } = target
  return transaction(pool, async (db) => {
    const locked = (await lockCredential(db, actor, name)) ?? (await create(db, actor, name))
    if (locked === null) return null
    const reveal = target.reveal ?? locked.reveal
    const content = isOwner
      ? { ...DEFAULT_BOUNDS, ...target.content }
      : await narrowedContent(db, locked, target.content)
    if (content === null || (locked.reveal === 'owner' && reveal === 'agent' && !isOwner)) {
      await writeAudit(db, actor, { action: 'vault.put', subject: name, outcome: 'refused' })
      return 'withheld'
    }
    const next = { ...locked, reveal }
    const rotated =
      !locked.isNew &&
      (isWithheld(locked, next) || isOtherData(await openCurrent(db, target, locked), content.data))
    return addVersion(db, target, next, { content, rotated, action: 'vault.put' })
  })
}

const DEFAULT_BOUNDS: Bounds = {
  allowedHosts: null,
  allowedMethods: null,
  allowedPaths: null,
  placement: null,
}

/**
 * Returns the content that an API key may store in a credential. @returns null if the new content would widen the
 * present bounds (limits on use).
 */
async function narrowedContent(
  db: Queryable,
  { row, version, reveal, isBounded, isNew }: Locked,
  given: GivenContent,
): Promise<CredentialContent | null> {
  if (isNew || (reveal === 'agent' && !isBounded)) return { ...DEFAULT_BOUNDS, ...given }
  const present = boundsOf((await readVersion(db, row, version))!)
  // The code computes the default bounds (limits on use) again, because another credential type or another metadata.uri
  // has other default bounds.
  const content = { ...present, ...given }
  return areWithin(effectiveBounds(content), present) ? content : null
}

/**
 * Tells whether a secret is hidden from API keys either before a change of its credential or after it. For such a
 * secret, every new version counts as a rotation, because a comparison of the old and the new secret would reveal to a
 * caller whether a guess was right.
 */
export const isWithheld = (...credentials: readonly { reveal: Reveal }[]): boolean =>
  credentials.some(({ reveal }) => reveal === 'owner')

/**
 * Locks a credential, so that its writers write one after the other. Their version numbers then have no gap and no
 * duplicate.
 */
export async function lockCredential(
  db: Queryable,
  { projectId }: Actor,
  name: string,
): Promise<Locked | null> {
  const { rows } = await db.query<Omit<Locked, 'isNew'>>({
    name: 'lock-credential',
    text: `select ${LOCKED} from credentials c where project_id = $1 and name = $2
             and exists (select from projects p where p.id = c.project_id and p.deleted_at is null)
           for no key update of c`,
    values: [projectId, name],
  })
  return rows[0] === undefined ? null : { ...rows[0], isNew: false }
}

/**
 * Creates a credential. The function locks the project's row, so that concurrent calls respect the limit on
 * credentials. A change of an existing credential needs no such lock.
 */
async function create(db: Queryable, actor: Actor, name: string): Promise<Locked | null> {
  const { projectId } = actor
  const project = await db.query(
    'select from projects where id = $1 and deleted_at is null for no key update',
    [projectId],
  )
  if (project.rowCount === 0) return null
  const made = await lockCredential(db, actor, name)
  if (made !== null) return made
  const { rows: counted } = await db.query<{ count: number }>(
    'select count(*)::int as count from credentials where project_id = $1',
    [projectId],
  )
  if (counted[0]!.count >= CREDENTIALS_MAX) throw new TooManyCredentialsError()
  const { rows } = await db.query<Omit<Locked, 'isNew'>>(
    `insert into credentials (id, project_id, name) values ($1, $2, $3) returning ${LOCKED}`,
    [newCredentialId(), projectId, name],
  )
  return { ...rows[0]!, isNew: true }
}

/**
 * Returns the present data of a credential before a caller replaces them. @returns null if the data cannot be
 * decrypted, because a caller may also replace unreadable data.
 */
export async function openCurrent(
  db: Queryable,
  { actor, keyring, name }: Target,
  locked: Locked,
): Promise<CredentialData | null> {
  const current = await readVersion(db, locked.row, locked.version)
  try {
    return openData(keyring, actor.projectId, name, current!)
  } catch (error) {
    if (error instanceof BrokenSealError || error instanceof UnknownMasterKeyError) return null
    throw error
  }
}

export const isOtherData = (before: CredentialData | null, after: CredentialData): boolean =>
  before === null || canonicalJson(before) !== canonicalJson(after)

const onlyBounds = ({ allowedHosts, allowedMethods, allowedPaths, placement }: Bounds): Bounds => ({
  allowedHosts,
  allowedMethods,
  allowedPaths,
  placement,
})

type NewVersion = {
  content: CredentialContent
  /** Tells whether the change of a credential replaced its secret. */
  rotated: boolean
  action: string
  detail?: string
}

export async function addVersion(
  db: Client,
  { actor, keyring, name, isOwner }: Target,
  { row, id, version: before, reveal }: Locked,
  { content, rotated, action, detail }: NewVersion,
): Promise<StoredCredential> {
  const version = before + 1
  const { type, data, metadata, expiresAt } = content
  const metadataJson = JSON.stringify(metadata)
  const sealed = sealData(keyring, { projectId: actor.projectId, name, version, data })
  const { rows } = await db.query<{
    created_at: Date
    last_used_at: Date | null
    last_rotated_at: Date | null
  }>({
    name: 'add-credential-version',
    text: `
      with added as (
        insert into credential_versions (credential_row, version, type, metadata, metadata_bytes, expires_at, has_totp,
                                         key_id, wrapped_key, ciphertext, allowed_hosts, allowed_methods, allowed_paths,
                                         placement, bounds_bytes)
        values ($1::bigint, $2::int, $3, $4::json, $5, $6, $7, $8, $9, $10, $14::text[], $15::text[], $16::text[], $17::text[],
                ${boundsBytes(['$14::text[]', '$15::text[]', '$16::text[]', '$17::text[]'])})
      ), pruned as (
        delete from credential_versions where credential_row = $1::bigint and version <= $2::int - ${VERSIONS_MAX}
      ), audited as (
        ${auditInsert(18, "'ok'")}
      )
      update credentials set version = $2::int, reveal = $12,
        bounded_by_owner = bounded_by_owner or $13,
        last_rotated_at = case when $11::boolean then clock_timestamp() else last_rotated_at end
      where row = $1::bigint returning created_at, last_used_at, last_rotated_at`,
    values: [
      row,
      version,
      type,
      metadataJson,
      Buffer.byteLength(metadataJson),
      expiresAt,
      hasTotp(type, data),
      sealed.keyId,
      sealed.wrappedKey,
      sealed.ciphertext,
      rotated,
      reveal,
      isOwner,
      ...boundsValues(content),
      ...auditValues(actor, {
        action,
        subject: name,
        ...(detail === undefined ? {} : { detail }),
      }),
    ],
  })
  const times = rows[0]!
  return {
    id,
    name,
    version,
    type,
    metadata,
    expiresAt,
    lastUsedAt: times.last_used_at,
    lastRotatedAt: times.last_rotated_at,
    createdAt: times.created_at,
    ...onlyBounds(content),
    reveal,
  }
}

/**
 * Describes why an operation on a credential failed. The kind `withheld` means that only the owner may read the
 * credential.
 */
export type Failed = {
  kind: Exclude<Outcome, 'ok' | 'failed'> | 'withheld'
  expiresAt?: Date
}

/** Tells why a version of a credential cannot be read. @returns null if the version of the credential can be read. */
export const refusal = (stored: VersionRow | null): Failed | null => {
  if (stored === null) return { kind: 'not_found' }
  return stored.expired ? { kind: 'expired', expiresAt: stored.expires_at! } : null
}

/**
 * Deletes a credential with all its versions and their data keys.
 * @returns false if the project has no such credential.
 */
export async function deleteCredential(
  db: Queryable,
  { actor, name }: { actor: Actor; name: string },
): Promise<boolean> {
  const { rows } = await db.query<{ gone: number }>({
    name: 'delete-credential',
    text: `
      with gone as (
        delete from credentials where project_id = $1::text and name = $5::text returning row
      ), audited as (
        ${auditInsert(1, "case when exists (select from gone) then 'ok' else 'not_found' end")}
      )
      select count(*)::int as gone from gone`,
    values: auditValues(actor, { action: 'vault.delete', subject: name }),
  })
  return rows[0]!.gone === 1
}
