/**
 * Stores the approval requests that an owner decides. One table holds the requests for mails and for payments. The
 * columns `kind` and `subject` name the mail or the payment. The code that makes a request also carries out the owner's
 * decision, in one transaction (sql/mail/approval/heldMails.ts, sql/purse/purchases/askedPayments.ts).
 */
import type { Cursor } from '../../shared/cursor.ts'
import type { Queryable } from '../db.ts'
import { pageStart } from '../pageStart.ts'

export const APPROVAL_STATES = ['waiting', 'approved', 'rejected', 'withdrawn', 'expired'] as const
export type ApprovalState = (typeof APPROVAL_STATES)[number]

export type ApprovalKind = 'mail' | 'payment'

/** Describes an approval request and its decision. */
export type Approval = {
  row: bigint
  id: string
  projectId: string
  kind: ApprovalKind
  /** Holds the object that the approval request is about: the Message-ID of a mail, or the id of a purchase. */
  subject: string
  state: ApprovalState
  /** Holds the SHA-256 of the approved content. Null means that the mail or the payment is not approved. */
  contentHash: Buffer | null
  requestedAt: Date
  expiresAt: Date
  /** Tells whether the approval request has expired, even if no job has recorded this yet. */
  isLate: boolean
  decidedAt: Date | null
  /**
   * Names who decided the approval request: the prefix of an API key, a console session, or an approval link with its
   * email address. Null means that nobody has decided yet.
   */
  decidedBy: string | null
  reason: string | null
}

type ApprovalRow = {
  row: string
  id: string
  project_id: string
  kind: ApprovalKind
  subject: string
  state: ApprovalState
  content_hash: Buffer | null
  requested_at: Date
  expires_at: Date
  is_late: boolean
  decided_at: Date | null
  decided_by: string | null
  reason: string | null
}

const COLUMNS = `a.row, a.id, a.project_id, a.kind, a.subject, a.state, a.content_hash, a.requested_at, a.expires_at,
  a.expires_at <= clock_timestamp() as is_late, a.decided_at, a.decided_by, a.reason`

const toApproval = (row: ApprovalRow): Approval => ({
  row: BigInt(row.row),
  id: row.id,
  projectId: row.project_id,
  kind: row.kind,
  subject: row.subject,
  state: row.state,
  contentHash: row.content_hash,
  requestedAt: row.requested_at,
  expiresAt: row.expires_at,
  isLate: row.is_late,
  decidedAt: row.decided_at,
  decidedBy: row.decided_by,
  reason: row.reason,
})

/**
 * Returns an approval request by its id. @returns null if the approval request does not exist, or if its project is
 * deleted.
 */
export async function findApproval(
  db: Queryable,
  id: string,
  { lock = false }: { lock?: boolean } = {},
): Promise<Approval | null> {
  const { rows } = await db.query<ApprovalRow>(
    `select ${COLUMNS} from approvals a join projects p on p.id = a.project_id
     where a.id = $1 and p.deleted_at is null ${lock ? 'for update of a' : ''}`,
    [id],
  )
  return rows[0] === undefined ? null : toApproval(rows[0])
}

/**
 * Returns the approval request for a mail or a purchase. @returns null if no approval request exists for the mail or
 * purchase.
 */
export async function findApprovalOf(
  db: Queryable,
  { projectId, kind, subject }: Pick<Approval, 'projectId' | 'kind' | 'subject'>,
): Promise<Approval | null> {
  const { rows } = await db.query<ApprovalRow>(
    `select ${COLUMNS} from approvals a where a.project_id = $1 and a.kind = $2 and a.subject = $3`,
    [projectId, kind, subject],
  )
  return rows[0] === undefined ? null : toApproval(rows[0])
}

/**
 * Lists the approval requests of a project that are in the state `state`, newest first. The list holds at most `limit`
 * approval requests after the cursor.
 */
export async function listApprovals(
  db: Queryable,
  filter: {
    projectId: string
    kind: ApprovalKind
    state: ApprovalState
    cursor: Cursor | null
    limit: number
  },
): Promise<Approval[]> {
  const { rows } = await db.query<ApprovalRow>(
    `select ${COLUMNS} from approvals a
     where a.project_id = $1 and a.state = $5 and a.kind = $6 and (a.requested_at, a.row) < ($2::timestamptz, $3::bigint)
     order by a.requested_at desc, a.row desc limit $4`,
    [filter.projectId, ...pageStart(filter.cursor), filter.limit, filter.state, filter.kind],
  )
  return rows.map(toApproval)
}

/**
 * Ends an approval request that still waits for the owner's decision. The caller has locked its row, and has checked
 * that it still waits.
 */
export async function endApproval(
  db: Queryable,
  id: string,
  end: {
    state: Exclude<ApprovalState, 'waiting'>
    by: string
    reason?: string | null
    contentHash?: Buffer
  },
): Promise<Approval> {
  const { rows } = await db.query<ApprovalRow>(
    `update approvals a set state = $2, decided_by = $3, reason = $4, content_hash = $5,
       decided_at = clock_timestamp()
     where a.id = $1 and a.state = 'waiting' returning ${COLUMNS}`,
    [id, end.state, end.by, end.reason ?? null, end.contentHash ?? null],
  )
  return toApproval(rows[0]!)
}

/** Sets for how long the service keeps decided approval requests. */
const RETENTION = '90 days'

/** Deletes approval requests that were decided over 90 days ago, and their approval links. */
export async function deleteStaleApprovals(db: Queryable): Promise<void> {
  await db.query(
    `delete from approvals where state <> 'waiting' and decided_at < clock_timestamp() - interval '${RETENTION}'`,
  )
}
