import type { UseEventData } from '../../shared/events/events.ts'
import type { Keyring, Sealed, SecretContext } from '../../shared/vault/envelope.ts'
import type { UseAnswer } from '../../shared/vault/useAnswer.ts'
import type { UseRequest } from '../../shared/vault/useRequest.ts'
import { type Outcome, setOutcome } from '../account/audit.ts'
import { CHANGES_CHANNEL } from '../changes.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { deleteInBatches } from '../deleteInBatches.ts'
import { recordEvents } from '../events/events.ts'
import { hasNoJob } from '../queue/jobs.ts'

/**
 * Sets for how long the service keeps the response to an ended request with a secret. The service also never sends a
 * request that has waited longer than USE_KEPT.
 */
export const USE_KEPT = '10 minutes'

const REQUEST = 1
const ANSWER = 2

/** Returns the encryption context (associated data) for a stored request with a secret, or for its response. */
export const useContext = (projectId: string, id: string, version: number): SecretContext => ({
  purpose: 'vault-use',
  projectId,
  name: id,
  version,
})

/** Encrypts a request with a secret. The request contains placeholders in place of the secret. */
export const sealRequest = (
  keyring: Keyring,
  { projectId, id, request }: { projectId: string; id: string; request: UseRequest },
): Sealed => keyring.seal(Buffer.from(JSON.stringify(request)), useContext(projectId, id, REQUEST))

type UseState = 'queued' | 'sending' | UseEventData['state']

type UseRow = {
  id: string
  project_id: string
  credential_name: string
  state: UseState
  error: string | null
  method: string
  host: string
  path: string
  status: number | null
  audit_row: string
  content_version: number
  key_id: string | null
  wrapped_key: Buffer | null
  ciphertext: Buffer | null
  created_at: Date
  expires_at: Date
  expired: boolean
}

const COLUMNS = `id, project_id, credential_name, state, error, method, host, path, status, audit_row, content_version,
  key_id, wrapped_key, ciphertext, created_at, expires_at, expires_at <= clock_timestamp() as expired`

/** Describes a request with a secret in the form that the API's caller sees. */
export type Use = {
  id: string
  name: string
  state: UseState
  error: string | null
  answer: UseAnswer | null
  createdAt: Date
  expiresAt: Date
}

/**
 * Finds a request with a secret in a project. A request that has not ended is found even after its expiry, because its
 * job still records its end. @returns null if the project has no such request, or if it has ended and has expired.
 */
export async function findUse(
  db: Queryable,
  { projectId, id, keyring }: { projectId: string; id: string; keyring: Keyring },
): Promise<Use | null> {
  const { rows } = await db.query<UseRow>({
    name: 'find-use',
    text: `select ${COLUMNS} from vault_uses
           where id = $1 and project_id = $2 and (ended_at is null or expires_at > clock_timestamp())`,
    values: [id, projectId],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    id: row.id,
    name: row.credential_name,
    state: row.state,
    error: row.error,
    answer: row.content_version === ANSWER ? opened<UseAnswer>(keyring, row) : null,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}

function opened<Content>(keyring: Keyring, row: UseRow): Content | null {
  const { key_id: keyId, wrapped_key: wrappedKey, ciphertext } = row
  if (keyId === null || wrappedKey === null || ciphertext === null) return null
  const context = useContext(row.project_id, row.id, row.content_version)
  return JSON.parse(keyring.open({ keyId, wrappedKey, ciphertext }, context).toString())
}

/** Describes a request with a secret, with the data that the worker process needs. */
export type DueUse = { projectId: string; name: string; state: UseState; expired: boolean }

/**
 * Finds a request with a secret in any state. @returns null if the request does not exist, or if its project is
 * deleted.
 */
export async function findDueUse(db: Queryable, id: string): Promise<DueUse | null> {
  const { rows } = await db.query<UseRow>({
    name: 'find-due-use',
    text: `select ${COLUMNS} from vault_uses u
           where id = $1 and exists (select from projects p where p.id = u.project_id and p.deleted_at is null)`,
    values: [id],
  })
  const row = rows[0]
  if (row === undefined) return null
  const { project_id: projectId, credential_name: name, state, expired } = row
  return { projectId, name, state, expired }
}

/**
 * Marks a queued request with a secret as `sending`, before the worker process sends the request. The request never
 * becomes `queued` again, so the service sends it at most once. @returns the HTTP request. Null means that another
 * worker process already handles it.
 */
export async function startUse(
  db: Queryable,
  id: string,
  keyring: Keyring,
): Promise<UseRequest | null> {
  const { rows } = await db.query<UseRow>({
    name: 'start-use',
    text: `update vault_uses set state = 'sending' where id = $1 and state = 'queued' returning ${COLUMNS}`,
    values: [id],
  })
  return rows[0] === undefined ? null : opened<UseRequest>(keyring, rows[0])
}

/** Describes the end of a request with a secret. */
export type UseEnd =
  | { state: 'answered'; answer: UseAnswer }
  | { state: 'failed' | 'unknown'; error: string }

/**
 * Ends a request with a secret, and records its audit entry and its event. The stored response replaces the stored
 * request. If the request has already ended, the function changes nothing.
 */
export function endUse(
  pool: Pool,
  { id, keyring, end }: { id: string; keyring: Keyring; end: UseEnd },
): Promise<void> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<UseRow>(
      `select ${COLUMNS} from vault_uses where id = $1 and state in ('queued', 'sending') for no key update`,
      [id],
    )
    const row = rows[0]
    if (row === undefined) return
    const answer = end.state === 'answered' ? end.answer : null
    const sealed =
      answer === null
        ? null
        : keyring.seal(Buffer.from(JSON.stringify(answer)), useContext(row.project_id, id, ANSWER))
    const error = end.state === 'answered' ? null : end.error
    await db.query(
      `update vault_uses set state = $2, error = $3, status = $4, content_version = ${ANSWER}, key_id = $5,
         wrapped_key = $6, ciphertext = $7, ended_at = clock_timestamp(),
         expires_at = clock_timestamp() + interval '${USE_KEPT}'
       where id = $1`,
      [
        ...[id, end.state, error, answer?.status ?? null],
        ...[sealed?.keyId ?? null, sealed?.wrappedKey ?? null, sealed?.ciphertext ?? null],
      ],
    )
    await auditEnd(db, row, end.state === 'answered' ? 'ok' : 'failed', answer?.status ?? end.state)
    await db.query(`select pg_notify('${CHANGES_CHANNEL}', $1)`, [id])
    const { credential_name: name, project_id: projectId, method, host, path } = row
    const data: UseEventData = {
      useId: id,
      name,
      state: end.state,
      method,
      host,
      path,
      statusCode: answer?.status ?? null,
    }
    await recordEvents(db, [{ projectId, type: 'vault.used', data }])
  })
}

async function auditEnd(
  db: Queryable,
  { audit_row: auditRow }: UseRow,
  outcome: Outcome,
  result: number | string,
): Promise<void> {
  await db.query(`update audit_log set detail = detail || ' ' || $2 where row = $1`, [
    auditRow,
    String(result),
  ])
  if (outcome !== 'ok') await setOutcome(db, auditRow, outcome)
}

/**
 * Deletes expired requests with secrets, together with their responses. An unfinished request stays as long as it has a
 * job, because only the job records its end. Such a job can begin after the expiry if no worker for secrets has run for
 * longer than USE_KEPT.
 */
export async function deleteExpiredUses(db: Queryable): Promise<void> {
  const isOver = `(ended_at is not null or ${hasNoJob("'use_secret:' || vault_uses.id")})`
  await deleteInBatches(db, 'vault_uses', `expires_at <= statement_timestamp() and ${isOver}`)
}
