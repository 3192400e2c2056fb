import { newPurchaseId } from '../../../shared/ids.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import type { UseRequest, UseTarget } from '../../../shared/vault/useRequest.ts'
import { type Actor, AUDIT_COLUMNS, auditValues, setOutcome } from '../../account/audit.ts'
import type { Pool, Queryable } from '../../db.ts'
import { addPayloadsFrom, jobPayload } from '../../queue/jobs.ts'
import { type OpenCredential, openCredential, recordUsed } from '../../vault/credentialReads.ts'
import type { Failed } from '../../vault/credentials.ts'
import { readingTransaction } from '../../vault/failedReads.ts'
import { CONTENT, sealContent } from './purchaseContent.ts'

/**
 * Limits the number of purchases in progress of one project. Concurrent purchase calls may exceed this limit, but at
 * most by the number of these calls.
 */
const OPEN_MAX = 500
/** Limits the total bytes of purchase requests and seller responses that the service stores for one project. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024

/** Names the action of the audit entry about the reading of a credential. */
const USE = 'vault.use' as const

/** Describes a purchase that the API is about to accept. */
export type NewPurchase<Refusal> = {
  actor: Actor
  keyring: Keyring
  kind: 'payment' | 'quote'
  request: UseRequest
  target: UseTarget
  /**
   * Holds the MCP tool that the purchase request calls. Null means that the purchase request is a plain HTTP request.
   */
  tool: string | null
  /**
   * Holds the name of the vault credential that the HTTP request uses. The function `judge` decides whether the HTTP
   * request may use the credential. Null means that the HTTP request uses no credential.
   */
  credential: { name: string; judge: (credential: OpenCredential) => Refusal | null } | null
  requestHash: Buffer
  /** Holds the idempotency key of the purchase. Null means that the purchase is a quote. */
  key: string | null
  maxAtomic: bigint
  why: string | null
}

export type AcceptedPurchase<Refusal> =
  | { kind: 'ok'; id: string }
  /** Means that the Idempotency-Key of the call already belongs to a different purchase request. */
  | { kind: 'other_request' }
  /**
   * Means that the project has too many purchases in progress, or that its stored requests and responses are too large
   * together.
   */
  | { kind: 'busy' }
  | { kind: 'no_project' }
  /**
   * Means that the vault does not give out the credential, so that the service refuses the purchase request. In the
   * case `refused_by_judge`, the function `judge` does not allow the request to use the credential.
   */
  | { kind: 'credential'; failed: Failed }
  | { kind: 'refused_by_judge'; refusal: Refusal }

/**
 * Stores a purchase and the job that carries it out. A call with the Idempotency-Key of an earlier call finds the first
 * purchase, even if it is very old. The function does not lock the project's row, because with such a lock, two hundred
 * concurrent purchases waited five seconds.
 */
export function acceptPurchase<Refusal>(
  pool: Pool,
  purchase: NewPurchase<Refusal>,
): Promise<AcceptedPurchase<Refusal>> {
  const { credential, actor } = purchase
  if (credential === null) return store(pool, purchase)
  const { projectId } = actor
  const entry = { action: USE, subject: credential.name, detail: auditDetail(purchase.target) }
  return readingTransaction(pool, { actor, ...entry }, async (db) => {
    const before = await findByKey(db, projectId, purchase.key)
    if (before !== null) return found(before, purchase.requestHash)
    const judged = await judgeCredential(db, purchase, credential)
    if (judged.kind !== 'allowed') return judged
    const stored = await store(db, purchase)
    if (stored.kind === 'ok') await recordUsed(db, projectId, credential.name)
    else await setOutcome(db, judged.auditRow, 'refused')
    return stored
  })
}

/** Stores a purchase, its audit entry and its job in one SQL statement. */
async function store<Refusal>(
  db: Queryable,
  purchase: NewPurchase<Refusal>,
): Promise<AcceptedPurchase<Refusal>> {
  const { actor, keyring, kind, request, target, tool, credential, requestHash, key } = purchase
  const { projectId } = actor
  const id = newPurchaseId()
  const sealed = sealContent(keyring, { projectId, id }, CONTENT.request, request)
  const detail = auditDetail(target)
  const { rowCount } = await db.query({
    name: 'accept-purchase',
    text: `
      with stored as (
        insert into purchases (id, project_id, kind, idempotency_key, request_hash, method, host, path, max_atomic,
          why, asked_by, key_id, wrapped_key, ciphertext, tool, credential_name)
        select $1, j.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16
        from projects j cross join lateral (
          select count(*) filter (where ended_at is null) as open,
            coalesce(sum(octet_length(ciphertext)), 0) as bytes
          from purchases where project_id = j.id and key_id is not null) kept
        where j.id = $2 and j.deleted_at is null
          and kept.open < ${OPEN_MAX} and kept.bytes < ${KEPT_BYTES_MAX}
        on conflict (project_id, idempotency_key) do nothing
        returning id
      ), audited as (
        insert into audit_log (${AUDIT_COLUMNS})
        select $17::text, $18::text, $19::text, $20::text, $21::text, $22::text, 'ok' from stored
      ), due as (
        select 'buy' as task, 'buy:' || id as key, $23::json as payload from stored
      )
      select (${addPayloadsFrom('due')}) from stored`,
    values: [
      ...[id, projectId, kind, key, requestHash, target.method, target.host, target.path],
      ...[String(purchase.maxAtomic), purchase.why, actor.keyPrefix],
      ...[sealed.keyId, sealed.wrappedKey, sealed.ciphertext],
      ...[tool, credential?.name ?? null],
      ...auditValues(actor, { action: `purse.${kind}`, subject: id, detail }),
      jobPayload('buy', { purchaseId: id }),
    ],
  })
  if (rowCount === 1) return { kind: 'ok', id }
  const before = await findByKey(db, projectId, key)
  if (before !== null) return found(before, requestHash)
  return { kind: (await isLive(db, projectId)) ? 'busy' : 'no_project' }
}

const auditDetail = ({ method, host, path }: UseTarget): string =>
  `${method} ${host}${path}`.slice(0, 1_000)

/**
 * Opens the credential that a purchase request uses, and writes an audit entry about the reading of the credential.
 * @returns the reason why the service refuses the purchase request. The kind `allowed` means that the purchase request
 * may use the credential.
 */
async function judgeCredential<Refusal>(
  db: Queryable,
  { actor, keyring, target }: NewPurchase<Refusal>,
  { name, judge }: NonNullable<NewPurchase<Refusal>['credential']>,
): Promise<AcceptedPurchase<Refusal> | { kind: 'allowed'; auditRow: string }> {
  const detail = auditDetail(target)
  const read = { actor, keyring, name, action: USE, isOwner: false, detail }
  const opened = await openCredential(db, read)
  if (opened.kind !== 'ok') return { kind: 'credential', failed: opened }
  const refusal = judge(opened.credential)
  if (refusal === null) return { kind: 'allowed', auditRow: opened.auditRow }
  await setOutcome(db, opened.auditRow, 'refused')
  return { kind: 'refused_by_judge', refusal }
}

type Before = { id: string; request_hash: Buffer }

const found = ({ id, request_hash: hash }: Before, requestHash: Buffer): AcceptedPurchase<never> =>
  hash.equals(requestHash) ? { kind: 'ok', id } : { kind: 'other_request' }

async function findByKey(
  db: Queryable,
  projectId: string,
  key: string | null,
): Promise<Before | null> {
  if (key === null) return null
  const { rows } = await db.query<Before>({
    name: 'find-purchase-by-key',
    text: 'select id, request_hash from purchases where project_id = $1 and idempotency_key = $2',
    values: [projectId, key],
  })
  return rows[0] ?? null
}

async function isLive(db: Queryable, projectId: string): Promise<boolean> {
  const { rowCount } = await db.query('select from projects where id = $1 and deleted_at is null', [
    projectId,
  ])
  return rowCount === 1
}
