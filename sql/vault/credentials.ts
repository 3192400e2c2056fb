import { canonicalJson } from '../../shared/canonicalJson.ts'
import { newCredentialId } from '../../shared/ids.ts'
import type { Reveal } from '../../shared/vault/allowedHosts.ts'
import {
  type CredentialData,
  type CredentialType,
  hasTotp,
  popBackupCode,
  withoutUsedCodes,
} from '../../shared/vault/credential.ts'
import {
  BrokenSealError,
  type Keyring,
  UnknownMasterKeyError,
} from '../../shared/vault/envelope.ts'
import { type Actor, auditInsert, auditValues, type Outcome, writeAudit } from '../account/audit.ts'
import { type Client, type Pool, type Queryable, transaction } from '../db.ts'
import { openData, readVersion, sealData, type VersionRow } from './credentialVersions.ts'

/** The content a client stores under a name. */
export type CredentialContent = {
  type: CredentialType
  data: CredentialData
  metadata: Record<string, unknown>
  expiresAt: Date | null
  /** Null: the host of `metadata.uri`. */
  allowedHosts: readonly string[] | null
}

/** A stored credential, without its secret. */
export type StoredCredential = {
  id: string
  name: string
  version: number
  type: CredentialType
  metadata: Record<string, unknown>
  expiresAt: Date | null
  lastUsedAt: Date | null
  lastRotatedAt: Date | null
  createdAt: Date
  allowedHosts: readonly string[] | null
  reveal: Reveal
}

/** Most credentials of one project. */
export const CREDENTIALS_MAX = 10_000
/** Stored versions of one credential, including the current one. */
const VERSIONS_MAX = 10

/** The project has {@link CREDENTIALS_MAX} credentials. */
export class TooManyCredentialsError extends Error {}

type Target = { actor: Actor; keyring: Keyring; name: string }
type Locked = { row: string; id: string; version: number; reveal: Reveal; isNew: boolean }

/**
 * Creates or overwrites a credential as its next version.
 * @param target.reveal absent: as before; `agent` for a new credential.
 * @returns null: the project is deleted. `withheld`: only the owner may reveal it to agents.
 * @throws {TooManyCredentialsError}
 */
export async function storeCredential(
  pool: Pool,
  target: Target & { content: CredentialContent; reveal?: Reveal | undefined; isOwner: boolean },
): Promise<StoredCredential | 'withheld' | null> {
  const { actor, name, content, isOwner } = target
  return transaction(pool, async (db) => {
    const locked = (await lockCredential(db, actor, name)) ?? (await create(db, actor, name))
    if (locked === null) return null
    const reveal = target.reveal ?? locked.reveal
    if (locked.reveal === 'owner' && reveal === 'agent' && !isOwner) {
      await writeAudit(db, actor, { action: 'vault.put', subject: name, outcome: 'refused' })
      return 'withheld'
    }
    const rotated =
      !locked.isNew && isOtherData(await openCurrent(db, target, locked), content.data)
    return addVersion(db, target, { ...locked, reveal }, { content, rotated, action: 'vault.put' })
  })
}

/** Locks a credential: writers of one name take turns, and version numbers have no gaps or duplicates. */
export async function lockCredential(
  db: Queryable,
  { projectId }: Actor,
  name: string,
): Promise<Locked | null> {
  const { rows } = await db.query<Omit<Locked, 'isNew'>>({
    name: 'lock-credential',
    text: `select row, id, version, reveal from credentials where project_id = $1 and name = $2 for no key update`,
    values: [projectId, name],
  })
  return rows[0] === undefined ? null : { ...rows[0], isNew: false }
}

/** Creates a credential under the project's lock, which keeps the bound. Overwriting does not take this lock. */
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
    'insert into credentials (id, project_id, name) values ($1, $2, $3) returning row, id, version, reveal',
    [newCredentialId(), projectId, name],
  )
  return { ...rows[0]!, isNew: true }
}

/** The data before its replacement; null: it does not decrypt, and may be replaced all the same. */
async function openCurrent(
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

const isOtherData = (before: CredentialData | null, after: CredentialData): boolean =>
  before === null || canonicalJson(before) !== canonicalJson(after)

type NewVersion = {
  content: CredentialContent
  /** The secret changed. */
  rotated: boolean
  action: string
  detail?: string
}

async function addVersion(
  db: Client,
  { actor, keyring, name }: Target,
  { row, id, version: before, reveal }: Locked,
  { content, rotated, action, detail }: NewVersion,
): Promise<StoredCredential> {
  const version = before + 1
  const { type, data, metadata, expiresAt, allowedHosts } = content
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
                                         key_id, wrapped_key, ciphertext, allowed_hosts)
        values ($1::bigint, $2::int, $3, $4::json, $5, $6, $7, $8, $9, $10, $12::text[])
      ), pruned as (
        delete from credential_versions where credential_row = $1::bigint and version <= $2::int - ${VERSIONS_MAX}
      ), audited as (
        ${auditInsert(14, "'ok'")}
      )
      update credentials set version = $2::int, reveal = $13,
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
      allowedHosts,
      reveal,
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
    allowedHosts,
    reveal,
  }
}

/** The failure of an operation on a credential. `withheld`: it is revealed to its owner only. */
export type Failed = {
  kind: Exclude<Outcome, 'ok' | 'failed'> | 'withheld'
  expiresAt?: Date
}

/** Stores an old version as the newest one; backup codes used since then stay used. */
export async function restoreVersion(
  pool: Pool,
  target: Target & { version: number },
): Promise<{ kind: 'ok'; credential: StoredCredential } | Failed> {
  const { actor, keyring, name, version } = target
  const detail = `version ${version}`
  return transaction(pool, async (db) => {
    const locked = await lockCredential(db, actor, name)
    const old = locked === null ? null : await readVersion(db, locked.row, version)
    const failed = refusal(old)
    if (failed !== null || locked === null || old === null) {
      const kind = failed?.kind === 'expired' ? 'expired' : 'not_found'
      await writeAudit(db, actor, { action: 'vault.restore', subject: name, detail, outcome: kind })
      return failed ?? { kind: 'not_found' }
    }
    const restored = openData(keyring, actor.projectId, name, old)
    const current = await openCurrent(db, target, locked)
    const data = current === null ? restored : withoutUsedCodes(restored, current)
    const { type, metadata, expires_at: expiresAt, allowed_hosts: allowedHosts } = old
    const content = { type, data, metadata, expiresAt, allowedHosts }
    const rotated = isOtherData(current, data)
    const action = 'vault.restore'
    const credential = await addVersion(db, target, locked, { content, rotated, action, detail })
    return { kind: 'ok', credential }
  })
}

/**
 * Takes one backup code out of a credential. The version keeps its number and gets a new data key: taking codes must
 * not prune older versions.
 */
export async function takeBackupCode(
  pool: Pool,
  { actor, keyring, name, isOwner }: Target & { isOwner: boolean },
): Promise<{ kind: 'ok'; code: string; remaining: number } | Failed> {
  const entry = { action: 'vault.backup_code', subject: name }
  return transaction(pool, async (db) => {
    const locked = await lockCredential(db, actor, name)
    const current = locked === null ? null : await readVersion(db, locked.row, locked.version)
    const isWithheld = locked?.reveal === 'owner' && !isOwner
    const failed: Failed | null = isWithheld ? { kind: 'withheld' } : refusal(current)
    const popped =
      failed === null && current !== null
        ? popBackupCode(openData(keyring, actor.projectId, name, current))
        : null
    if (locked === null || current === null || popped === null) {
      const refused: Failed = failed ?? { kind: 'refused' }
      const outcome = refused.kind === 'withheld' ? 'refused' : refused.kind
      await writeAudit(db, actor, { ...entry, outcome })
      return refused
    }
    const { data, code, remaining } = popped
    const { version } = locked
    const sealed = sealData(keyring, { projectId: actor.projectId, name, version, data })
    await db.query({
      name: 'take-backup-code',
      text: `
        with replaced as (
          update credential_versions set key_id = $3, wrapped_key = $4, ciphertext = $5
          where credential_row = $1::bigint and version = $2
        ), audited as (
          ${auditInsert(6, "'ok'")}
        )
        update credentials set last_used_at = clock_timestamp() where row = $1::bigint`,
      values: [
        locked.row,
        version,
        sealed.keyId,
        sealed.wrappedKey,
        sealed.ciphertext,
        ...auditValues(actor, entry),
      ],
    })
    return { kind: 'ok', code, remaining }
  })
}

const refusal = (stored: VersionRow | null): Failed | null => {
  if (stored === null) return { kind: 'not_found' }
  return stored.expired ? { kind: 'expired', expiresAt: stored.expires_at! } : null
}
