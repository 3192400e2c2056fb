/**
 * Implements the operations of the vault for both REST and MCP. Each operation checks scope and input, and writes the
 * audit log entry. It returns the JSON of the API response or throws an ApiError.
 */

import { encodeCursor } from '../../shared/cursor.ts'
import { parseDuration, parseIsoTime } from '../../shared/isoTime.ts'
import type { Scope } from '../../shared/scopes.ts'
import type { Reveal } from '../../shared/vault/bounds/allowedHosts.ts'
import { BOUNDS } from '../../shared/vault/bounds/bounds.ts'
import {
  CredentialInputError,
  type CredentialType,
  checkContent,
  checkName,
  totpKeyOf,
  unusedBackupCodes,
} from '../../shared/vault/credential.ts'
import { totpCode } from '../../shared/vault/totp.ts'
import {
  findCredential as findRow,
  listCredentials as listRows,
  openCredential,
  openRead,
} from '../../sql/vault/credentialReads.ts'
import {
  CREDENTIALS_MAX,
  deleteCredential as deleteRow,
  type Failed,
  type GivenContent,
  storeCredential as storeRow,
  TooManyCredentialsError,
} from '../../sql/vault/credentials.ts'
import { listVersions as listVersionRows } from '../../sql/vault/credentialVersions.ts'
import { protectCredential as protectRow } from '../../sql/vault/protection.ts'
import { restoreVersion as restoreRow } from '../../sql/vault/restoreVersion.ts'
import { takeBackupCode as takeCode } from '../../sql/vault/takeBackupCode.ts'
import { ApiError, badRequest, notFound } from '../http/errors.ts'
import { readPage } from '../http/page.ts'
import type { Caller } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { type GivenBounds, readBounds } from './vaultBounds.ts'
import { toItem, toOpen, toOpenVersion, toStored, toVersion } from './vaultDocs.ts'

/** Holds the services that the operations of the vault need. */
type Vault = Pick<Services, 'pool' | 'keyring'>
type Reading = Vault & Pick<Services, 'credentials'>

/**
 * Handles the route GET /v0/vault, which lists the credentials. Without `limit`, the response holds as many credentials
 * as fit into the size limit of a response.
 */
export async function listCredentials(
  { pool }: Vault,
  caller: Caller,
  query: {
    limit?: string
    pageToken?: string
    expiringWithin?: string
    q?: string
    type?: CredentialType
  } = {},
) {
  requireScope(caller, 'vault:read')
  const { cursor, ...page } = readPage(query)
  const limit = query.limit === undefined ? CREDENTIALS_MAX : page.limit
  const expiringWithinMs = readExpiringWithin(query.expiringWithin)
  const { projectId } = caller
  const { q, type } = query
  const found = await listRows(pool, {
    projectId,
    expiringWithinMs,
    ...(q === undefined ? {} : { name: q }),
    ...(type === undefined ? {} : { type }),
    cursor,
    limit,
  })
  const last = found.credentials.at(-1)
  const at = expiringWithinMs === null ? last?.createdAt : last?.expiresAt
  return {
    credentials: found.credentials.map(toItem),
    count: found.credentials.length,
    ...(found.more && last !== undefined && at instanceof Date
      ? { nextPageToken: encodeCursor({ atMs: at.getTime(), row: last.row }) }
      : {}),
  }
}

/** Handles PUT /v0/vault/{name}, which stores a credential. */
export async function storeCredential(
  { pool, keyring, config }: Vault & Pick<Services, 'config'>,
  caller: Caller,
  name: string,
  body: Content & { reveal?: Reveal },
) {
  const target = await changeTarget({ pool, keyring }, caller, name)
  const content = readContent(body)
  try {
    const stored = await storeRow(pool, { ...target, content, reveal: body.reveal })
    if (stored === 'withheld') throw ownersAlone()
    // A null result means that the project was deleted after the gate (the checks before every handler) had accepted
    // the request.
    if (stored === null) throw new ApiError(401, 'unauthorized', 'Invalid API key')
    return config.answers === 'full' ? toItem(stored) : toStored(stored)
  } catch (error) {
    if (!(error instanceof TooManyCredentialsError)) throw error
    throw badRequest(`A project must have at most ${CREDENTIALS_MAX} credentials`)
  }
}

/** Handles GET /v0/vault/{name}, which reads a credential with its secret. */
export async function readCredential(vault: Reading, caller: Caller, name: string) {
  return toOpen(await open(vault, caller, name, 'vault.get'))
}

/** Handles GET /v0/vault/{name}/totp, which returns the current one-time code. */
export async function currentTotp(vault: Reading, caller: Caller, name: string) {
  const { type, data } = await open(vault, caller, name, 'vault.totp')
  const { code, remainingS } = totpCode(totpKeyOf(type, data)!, Date.now())
  return { code, remaining: remainingS, backupCodesRemaining: unusedBackupCodes(data) }
}

/** Handles POST /v0/vault/{name}/totp/backup, which takes a backup code. */
export async function takeBackupCode(vault: Vault, caller: Caller, name: string) {
  const taken = await takeCode(vault.pool, await changeTarget(vault, caller, name))
  if (taken.kind !== 'ok') throw failure(name, taken, 'No unused backup codes remaining')
  return { code: taken.code, remaining: taken.remaining }
}

/** Handles PATCH /v0/vault/{name}, which changes the limits on a credential. */
export async function protectCredential(
  { pool }: Vault,
  caller: Caller,
  name: string,
  { reveal, ...given }: GivenBounds & { reveal?: Reveal },
) {
  requireScope(caller, 'vault:write')
  orBadRequest(() => checkName(name))
  const bounds = readBounds(given)
  if (Object.keys(bounds).length === 0 && reveal === undefined) {
    throw badRequest(`The body must hold ${BOUNDS.join(', ')} or reveal`)
  }
  const changed = await protectRow(pool, {
    actor: caller,
    name,
    isOwner: caller.isOwner,
    bounds,
    ...(reveal === undefined ? {} : { reveal }),
  })
  if (changed === 'not_found') throw missing()
  if (changed === 'withheld') throw ownersAlone()
  const found = await findRow(pool, { projectId: caller.projectId, name })
  if (found === null) throw missing()
  return toItem(found)
}

/** Handles DELETE /v0/vault/{name}, which deletes a credential. */
export async function deleteCredential({ pool }: Vault, caller: Caller, name: string) {
  requireScope(caller, 'vault:write')
  orBadRequest(() => checkName(name))
  if (!(await deleteRow(pool, { actor: caller, name }))) throw missing()
}

/** Handles GET /v0/vault/{name}/versions, which lists the versions of a credential. */
export async function listVersions({ pool }: Vault, caller: Caller, name: string) {
  requireScope(caller, 'vault:read')
  orBadRequest(() => checkName(name))
  const found = await listVersionRows(pool, { projectId: caller.projectId, name })
  if (found === null) throw missing()
  return { versions: found.map(toVersion), count: found.length }
}

/** Handles GET /v0/vault/{name}/versions/{version}, which reads one version of a credential. */
export async function readVersion(vault: Reading, caller: Caller, name: string, version: number) {
  return toOpenVersion(await open(vault, caller, name, 'vault.version_get', version))
}

/** Handles POST /v0/vault/{name}/versions/{version}/restore, which makes an old version the newest. */
export async function restoreVersion(vault: Vault, caller: Caller, name: string, version: number) {
  const target = await changeTarget(vault, caller, name)
  const restored = await restoreRow(vault.pool, { ...target, version })
  if (restored.kind !== 'ok') throw failure(name, restored, '', version)
  return toStored(restored.credential)
}

async function open(
  { pool, keyring, credentials }: Reading,
  caller: Caller,
  name: string,
  action: 'vault.get' | 'vault.totp' | 'vault.version_get',
  version?: number,
) {
  requireScope(caller, 'vault:read')
  orBadRequest(() => checkName(name))
  const read = { actor: caller, name, isOwner: caller.isOwner, keyring: await keyring(pool) }
  const opened =
    action === 'vault.get'
      ? await openRead(pool, read, await credentials.submit(read))
      : await openCredential(pool, {
          ...read,
          action,
          ...(version === undefined ? {} : { version }),
        })
  if (opened.kind === 'ok') return opened.credential
  throw failure(name, opened, 'No TOTP secret found on this credential', version)
}

async function changeTarget({ pool, keyring }: Vault, caller: Caller, name: string) {
  requireScope(caller, 'vault:write')
  orBadRequest(() => checkName(name))
  return { actor: caller, keyring: await keyring(pool), name, isOwner: caller.isOwner }
}

export function requireScope(caller: Caller, scope: Scope): void {
  if (caller.scopes.includes(scope)) return
  throw new ApiError(403, 'forbidden', `Missing required scope: ${scope}`)
}

const missing = () => notFound('Credential not found')

const ownersAlone = () =>
  new ApiError(
    403,
    'forbidden',
    'Only the owner, in the console, may reveal this credential to agents, or widen its allowedHosts, allowedMethods, ' +
      'allowedPaths or placement',
  )

/**
 * Returns the API error that reports a failed operation on a credential.
 * @param refused is the error message if the credential lacks the secret that the operation needs.
 */
export function failure(name: string, failed: Failed, refused: string, version?: number): ApiError {
  const { kind, expiresAt } = failed
  if (kind === 'refused') return badRequest(refused)
  if (kind === 'withheld') {
    const message = `Credential "${name}" is revealed to its owner only; use it with POST /v0/vault/{name}/use or /sign`
    return new ApiError(403, 'forbidden', message)
  }
  if (kind === 'not_found') return version === undefined ? missing() : notFound('Version not found')
  const which = version === undefined ? 'Credential' : `Version ${version} of credential`
  const at = expiresAt?.toISOString() ?? ''
  return new ApiError(410, 'expired', `${which} "${name}" has expired (${at})`)
}

type Content = GivenBounds & {
  type: string
  data: unknown
  metadata?: unknown
  expiresAt?: unknown
}

function readContent(body: Content): GivenContent {
  const content = { type: body.type, data: body.data, metadata: body.metadata ?? {} }
  return orBadRequest(() => {
    checkContent(content)
    return { ...content, expiresAt: readExpiresAt(body.expiresAt), ...readBounds(body) }
  })
}

function readExpiresAt(given: unknown): Date | null {
  if (given === undefined || given === null) return null
  const at = typeof given === 'string' ? parseIsoTime(given) : null
  if (at !== null) return at
  throw badRequest(
    'expiresAt must be an ISO 8601 time with its zone, such as 2026-12-31T23:59:59Z, or a date',
  )
}

function readExpiringWithin(given: string | undefined): number | null {
  if (given === undefined) return null
  const ms = parseDuration(given)
  if (ms !== null) return ms
  throw badRequest(
    'expiringWithin must be a whole number and s, m, h, d or w, such as 7d, at most ten years',
  )
}

/** Runs a check of the input, and turns an error of this check into a 400 error. */
export function orBadRequest<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof CredentialInputError) throw badRequest(error.message)
    throw error
  }
}
