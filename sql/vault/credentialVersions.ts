import type { CredentialData, CredentialType } from '../../shared/vault/credential.ts'
import type { Keyring, Sealed, SecretContext } from '../../shared/vault/envelope.ts'
import type { Queryable } from '../db.ts'

/** One stored version. */
export type VersionRow = {
  version: number
  type: CredentialType
  metadata: Record<string, unknown>
  expires_at: Date | null
  expired: boolean
  allowed_hosts: string[] | null
  key_id: string
  wrapped_key: Buffer
  ciphertext: Buffer
  created_at: Date
}

const VERSION_COLUMNS = `version, type, metadata, expires_at, key_id, wrapped_key, ciphertext, created_at, allowed_hosts,
  coalesce(expires_at <= clock_timestamp(), false) as expired`

/** One version of a credential that the caller has locked, or null. */
export async function readVersion(
  db: Queryable,
  credentialRow: string,
  version: number,
): Promise<VersionRow | null> {
  const { rows } = await db.query<VersionRow>({
    name: 'read-credential-version',
    text: `select ${VERSION_COLUMNS} from credential_versions where credential_row = $1 and version = $2`,
    values: [credentialRow, version],
  })
  return rows[0] ?? null
}

const context = (projectId: string, name: string, version: number): SecretContext => ({
  purpose: 'credential',
  projectId,
  name,
  version,
})

/** Encrypts the data of one version. */
export function sealData(
  keyring: Keyring,
  input: { projectId: string; name: string; version: number; data: CredentialData },
): Sealed {
  const { projectId, name, version, data } = input
  return keyring.seal(Buffer.from(JSON.stringify(data)), context(projectId, name, version))
}

/** Decrypts the data of one version. @throws {UnknownMasterKeyError} {BrokenSealError} */
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

/** A version without its secret. */
export type VersionSummary = {
  version: number
  type: CredentialType
  metadata: Record<string, unknown>
  expiresAt: Date | null
  createdAt: Date
  current: boolean
}

/** The stored versions of a credential, newest first; null: no such credential. */
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
