import type { Cursor } from '../../../shared/cursor.ts'
import { newDraftId } from '../../../shared/ids.ts'
import { holdProject } from '../../account/projects/holdProject.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { pageStart } from '../../pageStart.ts'

/** Sets the maximum number of drafts that one project may store. */
export const DRAFTS_MAX = 100
/** Sets the maximum number of bytes of all drafts of one project together. */
export const DRAFTS_MAX_BYTES = 100 * 1024 * 1024

/** Reports that a project would have more than {@link DRAFTS_MAX} drafts. */
export class TooManyDraftsError extends Error {}
/** Reports that a project's drafts would have more than {@link DRAFTS_MAX_BYTES} bytes. */
export class DraftsTooLargeError extends Error {}

type Content = Record<string, unknown>

/**
 * Describes a draft: a mail that somebody is still writing. The service stores the fields `content` and `attachments`
 * exactly as the caller gave them.
 */
export type Draft = {
  row: bigint
  id: string
  version: number
  content: Content
  attachments: Content[]
  createdAt: Date
  updatedAt: Date
}

type DraftRow = {
  row: string
  id: string
  version: number
  content: Content
  attachments: Content[]
  created_at: Date
  updated_at: Date
}

const toDraft = (row: DraftRow): Draft => ({
  row: BigInt(row.row),
  id: row.id,
  version: row.version,
  content: row.content,
  attachments: row.attachments,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

const COLUMNS = 'd.row, d.id, d.version, d.content, d.attachments, d.created_at, d.updated_at'

/** Finds one draft of a project by id. @returns null if the project has no such draft. */
export async function findDraft(
  db: Queryable,
  projectId: string,
  id: string,
): Promise<Draft | null> {
  const { rows } = await db.query<DraftRow>({
    name: 'find-draft',
    text: `select ${COLUMNS} from drafts d where d.project_id = $1 and d.id = $2`,
    values: [projectId, id],
  })
  return rows[0] === undefined ? null : toDraft(rows[0])
}

/** Returns the size in bytes of a draft with its attachments. @returns 0 if the project has no such draft. */
export async function findDraftSize(db: Queryable, projectId: string, id: string): Promise<number> {
  const { rows } = await db.query<{ stored_bytes: string }>({
    name: 'find-draft-size',
    text: 'select stored_bytes from drafts where project_id = $1 and id = $2',
    values: [projectId, id],
  })
  return Number(rows[0]?.stored_bytes ?? 0)
}

/**
 * Lists the drafts of a project without their bodies and attachments, newest first. The list holds at most `limit`
 * drafts after the cursor.
 */
export async function listDrafts(
  db: Queryable,
  { projectId, cursor, limit }: { projectId: string; cursor: Cursor | null; limit: number },
): Promise<Draft[]> {
  const { rows } = await db.query<DraftRow>({
    name: 'list-drafts',
    text: `select d.row, d.id, d.version, d.content - 'text' - 'html' as content, '[]'::jsonb as attachments,
             d.created_at, d.updated_at
           from drafts d where d.project_id = $1 and (d.created_at, d.row) < ($2::timestamptz, $3::bigint)
           order by d.created_at desc, d.row desc limit $4`,
    values: [projectId, ...pageStart(cursor), limit],
  })
  return rows.map(toDraft)
}

type DraftContent = { content: Content; attachments: Content[] }

/**
 * Stores a draft. @throws {TooManyDraftsError} if the project has too many drafts. @throws {DraftsTooLargeError} if its
 * drafts together are too large.
 */
export async function createDraft(
  pool: Pool,
  projectId: string,
  given: DraftContent,
): Promise<Draft> {
  return transaction(pool, async (db) => {
    await holdProject(db, projectId)
    const { rows } = await db.query<DraftRow>(
      `insert into drafts as d (id, project_id, content, attachments, stored_bytes)
       values ($1, $2, $3, $4, $5) returning ${COLUMNS}`,
      [newDraftId(), projectId, ...storedValues(given)],
    )
    await checkBounds(db, projectId)
    return toDraft(rows[0]!)
  })
}

/**
 * Changes a draft with the function `change`, which receives the present draft. @returns null if the project has no
 * such draft.
 * @throws {DraftsTooLargeError} if the project's drafts together are too large.
 */
export async function changeDraft(
  pool: Pool,
  { projectId, id }: { projectId: string; id: string },
  change: (draft: Draft) => DraftContent,
): Promise<Draft | null> {
  return transaction(pool, async (db) => {
    await holdProject(db, projectId)
    const draft = await findDraft(db, projectId, id)
    if (draft === null) return null
    const { rows } = await db.query<DraftRow>(
      `update drafts d set version = version + 1, updated_at = clock_timestamp(), content = $2, attachments = $3,
         stored_bytes = $4
       where d.id = $1 returning ${COLUMNS}`,
      [id, ...storedValues(change(draft))],
    )
    // If there is no row, another request has sent and deleted the draft after `findDraft` read it.
    if (rows[0] === undefined) return null
    await checkBounds(db, projectId)
    return toDraft(rows[0])
  })
}

/** Deletes a draft. @returns false if the project has no such draft. */
export async function deleteDraft(db: Queryable, projectId: string, id: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from drafts where project_id = $1 and id = $2', [
    projectId,
    id,
  ])
  return rowCount === 1
}

function storedValues({ content, attachments }: DraftContent): [string, string, number] {
  const texts: [string, string] = [JSON.stringify(content), JSON.stringify(attachments)]
  return [...texts, Buffer.byteLength(texts[0]) + Buffer.byteLength(texts[1])]
}

async function checkBounds(db: Queryable, projectId: string): Promise<void> {
  const { rows } = await db.query<{ count: number; bytes: string }>(
    'select count(*)::int as count, coalesce(sum(stored_bytes), 0) as bytes from drafts where project_id = $1',
    [projectId],
  )
  const { count, bytes } = rows[0]!
  if (count > DRAFTS_MAX) throw new TooManyDraftsError()
  if (Number(bytes) > DRAFTS_MAX_BYTES) throw new DraftsTooLargeError()
}
