import {
  type Bounds,
  type EffectiveBounds,
  effectiveBounds,
} from '../../shared/vault/bounds/bounds.ts'
import type { CredentialData, CredentialType } from '../../shared/vault/credential.ts'
import type { Keyring, Sealed, SecretContext } from '../../shared/vault/envelope.ts'
import type { Queryable } from '../db.ts'

/**
 * Lists the database columns that hold the bounds of a credential version. The bounds limit the hosts, methods, paths
 * and placement (allowed places) of a secret.
 */
export type BoundsRow = {
  allowed_hosts: string[] | null
  allowed_methods: string[] | null
  allowed_paths: string[] | null
  placement: string[] | null
}

/**
 * Writes SQL for the number of bytes in the given arrays of texts, which hold the bounds (limits on use) of a
 * credential version.
 */
export const boundsBytes = (arrays: readonly string[]): string =>
  arrays.map((array) => `coalesce(octet_length(array_to_string(${array}, '')), 0)`).join(' + ')

export const BOUNDS_COLUMNS = 'v.allowed_hosts, v.allowed_methods, v.allowed_paths, v.placement'

export const toBounds = (row: BoundsRow): Bounds => ({
  allowedHosts: row.allowed_hosts,
  allowedMethods: row.allowed_methods,
  allowedPaths: row.allowed_paths,
  placement: row.placement,
})

/**
 * Returns the bounds of a credential (the limits on the use of its secret) as SQL parameters, in the order of {@link
 * BOUNDS_COLUMNS}.
 */
export const boundsValues = ({ allowedHosts, allowedMethods, allowedPaths, placement }: Bounds) => [
  allowedHosts,
  allowedMethods,
  allowedPaths,
  placement,
]

/** Describes one stored version of a credential. */
export type VersionRow = BoundsRow & {
  version: number
  type: CredentialType
  metadata: Record<string, unknown>
  expires_at: Date | null
  expired: boolean
  key_id: string
  wrapped_key: Buffer
  ciphertext: Buffer
  created_at: Date
}

const VERSION_COLUMNS = `v.version, v.type, v.metadata, v.expires_at, v.key_id, v.wrapped_key, v.ciphertext, v.created_at,
  ${BOUNDS_COLUMNS}, coalesce(v.expires_at <= clock_timestamp(), false) as expired`

/** Returns one version of a locked credential. @returns null if the credential has no such version. */
export async function readVersion(
  db: Queryable,
  credentialRow: string,
  version: number,
): Promise<VersionRow | null> {
  const { rows } = await db.query<VersionRow>({
    name: 'read-credential-version',
    text: `select ${VERSION_COLUMNS} from credential_versions v where v.credential_row = $1 and v.version = $2`,
    values: [credentialRow, version],
  })
  return rows[0] ?? null
}

/**
 * Returns the bounds of a credential version (the limits on the use of its secret), with the default in place of each
 * null.
 */
export const boundsOf = (row: Pick<VersionRow, 'type' | 'metadata'> & BoundsRow): EffectiveBounds =>
  effectiveBounds({ ...toBounds(row), type: row.type, metadata: row.metadata })

/**
 * Returns the bounds (limits on use) of a given version of a credential and of all later versions. No later version is
 * missing, because the service removes the oldest versions first. If a later version has a null placement, the function
 * uses the default placement for the credential type of the given version.
 */
export async function boundsSince(
  db: Queryable,
  credentialRow: string,
  { version, type }: Pick<VersionRow, 'version' | 'type'>,
): Promise<EffectiveBounds[]> {
  const { rows } = await db.query<VersionRow>({
    name: 'bounds-since-version',
    text: `select v.metadata, ${BOUNDS_COLUMNS} from credential_versions v
           where v.credential_row = $1 and v.version >= $2 order by v.version`,
    values: [credentialRow, version],
  })
  return rows.map((row) => boundsOf({ ...row, type }))
}

const context = (projectId: string, name: string, version: number): SecretContext => ({
  purpose: 'credential',
  projectId,
  name,
  version,
})

/** Encrypts the data of one version of a credential. */
export function sealData(
  keyring: Keyring,
  input: { projectId: string; name: string; version: number; data: CredentialData },
): Sealed {
  const { projectId, name, version, data } = input
  return keyring.seal(Buffer.from(JSON.stringify(data)), context(projectId, name, version))
}

/**
 * Decrypts the data of one version of a credential. @throws {UnknownMasterKeyError} if the process lacks the master key
 * of the version. @throws {BrokenSealError} if the data cannot be decrypted.
 */
export function openData(
  keyring: Keyring,
  projectId: string,
  name: string,
  stored: Pick<VersionRow, 'version' | 'key_id' | 'wrapped_key' | 'ciphertext'>,
): CredentialData {
  const { version, key_id: keyId, wrapped_key: wrappedKey, ciphertext } = stored
  const sealed = { keyId, wrappedKey, ciphertext }
  return JSON.parse(keyring.open(sealed, context(projectId, name, version)).toString())
}

/** Describes a version of a credential without its secret. */
export type VersionSummary = {
  version: number
  type: CredentialType
  metadata: Record<string, unknown>
  expiresAt: Date | null
  createdAt: Date
  current: boolean
}

/** Lists the stored versions of a credential, newest first. @returns null if the project has no such credential. */
export async function listVersions(
  db: Queryable,
  { projectId, name }: { projectId: string; name: string },
): Promise<VersionSummary[] | null> {
  const { rows } = await db.query<VersionRow & { current: boolean }>({
    name: 'list-credential-versions',
    text: `
      select v.version, v.type, v.metadata, v.expires_at, v.created_at, v.version = c.version as current
      from credentials c join credential_versions v on v.credential_row = c.row
      where c.project_id = $1 and c.name = $2 order by v.version desc`,
    values: [projectId, name],
  })
  if (rows.length === 0) return null
  return rows.map(({ version, type, metadata, expires_at, created_at, current }) => ({
    version,
    type,
    metadata,
    expiresAt: expires_at,
    createdAt: created_at,
    current,
  }))
}
