import { newUseId } from '../../shared/ids.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import type { UseRequest, UseTarget } from '../../shared/vault/useRequest.ts'
import { type Actor, setOutcome } from '../account/audit.ts'
import { beginIdempotent } from '../account/idempotency.ts'
import type { Pool, Queryable } from '../db.ts'
import { addJob } from '../queue/jobs.ts'
import { type OpenCredential, openCredential, recordUsed } from './credentialReads.ts'
import type { Failed } from './credentials.ts'
import { readingTransaction } from './failedReads.ts'
import { sealRequest, USE_KEPT } from './uses.ts'

/** Limits the number of requests with secrets that are in progress in one project. */
const OPEN_MAX = 16
/**
 * Limits the total bytes of the requests with secrets, and of their responses, that the service stores for one project.
 */
export const KEPT_BYTES_MAX = 64 * 1024 * 1024

const OPERATION = 'vault.use'

/** Describes a request with a secret that the API is about to accept. */
export type NewUse<Refusal> = {
  actor: Actor
  keyring: Keyring
  name: string
  request: UseRequest
  target: UseTarget
  idempotency: { key: string; hash: Buffer } | null
  /**
   * Decides whether a request that uses a secret may have the credential, and returns the reason for a refusal. Null
   * means that the request may have it.
   */
  judge: (credential: OpenCredential) => Refusal | null
}

export type AcceptedUse<Refusal> =
  | { kind: 'ok'; id: string }
  /** Means that the Idempotency-Key of the call already belongs to a different request with a secret. */
  | { kind: 'other_request' }
  /**
   * Means that the project has too many requests with secrets in progress, or that its stored requests and responses
   * are too large together.
   */
  | { kind: 'busy' }
  | { kind: 'no_project' }
  | { kind: 'refused_by_judge'; refusal: Refusal }
  | Failed

/**
 * Stores a request with a secret, its job and its audit entry. A second call with the same Idempotency-Key finds the
 * request of the first call.
 */
export function acceptUse<Refusal>(
  pool: Pool,
  use: NewUse<Refusal>,
): Promise<AcceptedUse<Refusal>> {
  const { actor, keyring, name, request, target, idempotency } = use
  const { projectId } = actor
  const action = 'vault.use'
  const detail = `${target.method} ${target.host}${target.path}`
  return readingTransaction(pool, { actor, action, subject: name, detail }, async (db) => {
    const project = await db.query(
      'select from projects where id = $1 and deleted_at is null for no key update',
      [projectId],
    )
    if (project.rowCount === 0) return { kind: 'no_project' }
    if (idempotency !== null) {
      const found = await beginIdempotent(db, { projectId, operation: OPERATION, ...idempotency })
      if (!found.requestHash.equals(idempotency.hash)) return { kind: 'other_request' }
      if (found.result !== null) return { kind: 'ok', id: found.result }
    }
    const accepted = await store()
    if (idempotency !== null) await keepKey(db, { projectId, key: idempotency.key }, accepted)
    return accepted

    async function store(): Promise<AcceptedUse<Refusal>> {
      if (await isBusy(db, projectId)) return { kind: 'busy' }
      const opened = await openCredential(db, {
        actor,
        keyring,
        name,
        action,
        isOwner: false,
        detail,
      })
      if (opened.kind !== 'ok') return opened
      const refusal = use.judge(opened.credential)
      if (refusal !== null) {
        await setOutcome(db, opened.auditRow, 'refused')
        return { kind: 'refused_by_judge', refusal }
      }
      const { method, host, path } = target
      const id = newUseId()
      const sealed = sealRequest(keyring, { projectId, id, request })
      await db.query({
        name: 'accept-use',
        text: `insert into vault_uses (id, project_id, credential_name, method, host, path, audit_row, key_id, wrapped_key,
                                       ciphertext, expires_at)
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, clock_timestamp() + interval '${USE_KEPT}')`,
        values: [
          ...[id, projectId, name, method, host, path, opened.auditRow],
          ...[sealed.keyId, sealed.wrappedKey, sealed.ciphertext],
        ],
      })
      await recordUsed(db, projectId, name)
      await addJob(db, { task: 'use_secret', payload: { useId: id }, key: `use_secret:${id}` })
      return { kind: 'ok', id }
    }
  })
}

/**
 * Tells whether the project has too many requests with secrets in progress. The caller must have locked the row of the
 * project, so that the counts are exact.
 */
async function isBusy(db: Queryable, projectId: string): Promise<boolean> {
  const { rows } = await db.query<{ open: number; bytes: string }>({
    name: 'count-uses',
    text: `select count(*) filter (where state in ('queued', 'sending'))::int as open,
                  coalesce(sum(octet_length(ciphertext)), 0) as bytes
           from vault_uses where project_id = $1 and expires_at > clock_timestamp()`,
    values: [projectId],
  })
  return rows[0]!.open >= OPEN_MAX || Number(rows[0]!.bytes) >= KEPT_BYTES_MAX
}

/**
 * Stores the id of an accepted request with a secret under the idempotency key. If the service refuses the request, the
 * key becomes free, so that the caller can correct the request.
 */
async function keepKey(
  db: Queryable,
  { projectId, key }: { projectId: string; key: string },
  accepted: AcceptedUse<unknown>,
): Promise<void> {
  const values = [projectId, OPERATION, key]
  const where = 'where project_id = $1 and operation = $2 and key = $3'
  if (accepted.kind === 'ok') {
    await db.query(`update idempotency_keys set result = $4 ${where}`, [...values, accepted.id])
  } else {
    await db.query(`delete from idempotency_keys ${where}`, values)
  }
}
