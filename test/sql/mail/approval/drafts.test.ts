/** Tests that drafts belong to one project, are listed in pages, and that their number and size are limited. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  changeDraft,
  createDraft,
  DRAFTS_MAX,
  DRAFTS_MAX_BYTES,
  DraftsTooLargeError,
  deleteDraft,
  findDraft,
  listDrafts,
  TooManyDraftsError,
} from '../../../../sql/mail/approval/drafts.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const withSubject = (subject: string) => ({ content: { subject }, attachments: [] })
const create = (projectId: string, subject = 'Draft') =>
  createDraft(pool, projectId, withSubject(subject))
const change = (projectId: string, id: string, subject: string) =>
  changeDraft(pool, { projectId, id }, () => withSubject(subject))
/** Stores drafts of the given number and size, and does not check the limits. */
const fill = (projectId: string, count: number, bytes: number) =>
  pool.query(
    `insert into drafts (id, project_id, content, stored_bytes)
     select 'dr_' || gen_random_uuid(), $1, '{}', $3 from generate_series(1, $2)`,
    [projectId, count, bytes],
  )
const countOf = async (projectId: string) =>
  (await pool.query('select from drafts where project_id = $1', [projectId])).rows.length

test('a draft can be read, changed and deleted only by its own project', async () => {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  const [draft, second] = [await create(projectId), await create(projectId)]
  expect(await findDraft(pool, other, draft.id)).toBeNull()
  expect(await change(other, draft.id, 'Stolen')).toBeNull()
  expect(await deleteDraft(pool, other, draft.id)).toBe(false)
  expect(await findDraft(pool, projectId, draft.id)).toEqual(draft)
  expect(await change(projectId, draft.id, 'New')).toMatchObject({
    version: draft.version + 1,
    content: { subject: 'New' },
  })
  expect(await deleteDraft(pool, projectId, draft.id)).toBe(true)
  expect(await deleteDraft(pool, projectId, draft.id)).toBe(false)
  expect(await findDraft(pool, projectId, draft.id)).toBeNull()
  expect(await change(projectId, draft.id, 'Late')).toBeNull()
  expect(await findDraft(pool, projectId, second.id)).toEqual(second)
})

test('drafts are listed newest first, in pages, without their bodies', async () => {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  await create(other)
  const drafts = []
  for (const subject of ['1', '2', '3'])
    drafts.push(
      await createDraft(pool, projectId, {
        content: { subject, text: 'Text', html: '<p>Text</p>' },
        attachments: [{ filename: 'a.txt' }],
      }),
    )
  await pool.query('update drafts set created_at = $2 where project_id = $1', [
    projectId,
    drafts[0]!.createdAt,
  ])
  const first = await listDrafts(pool, { projectId, cursor: null, limit: 2 })
  expect(first.map(({ content, attachments }) => [content, attachments])).toEqual([
    [{ subject: '3' }, []],
    [{ subject: '2' }, []],
  ])
  const { row, createdAt } = first[1]!
  const cursor = { atMs: createdAt.getTime(), row }
  const second = await listDrafts(pool, { projectId, cursor, limit: 2 })
  expect(second.map(({ content }) => content)).toEqual([{ subject: '1' }])
})

test('a project cannot exceed the maximum number of drafts', async () => {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  await fill(projectId, DRAFTS_MAX - 1, 1)
  const last = await create(projectId)
  await expect(create(projectId)).rejects.toThrow(TooManyDraftsError)
  expect(await countOf(projectId)).toBe(DRAFTS_MAX)
  expect(await change(projectId, last.id, 'New')).not.toBeNull()
  await create(other)
})

test('all drafts of a project together cannot exceed the maximum number of bytes, counted in UTF-8', async () => {
  const projectId = await newProject(pool)
  const bytes = Buffer.byteLength(JSON.stringify({ subject: 'öö' })) + '[]'.length
  await fill(projectId, 1, DRAFTS_MAX_BYTES - bytes)
  const { id } = await create(projectId, 'öö')
  await expect(create(projectId, '')).rejects.toThrow(DraftsTooLargeError)
  await expect(change(projectId, id, 'ööö')).rejects.toThrow(DraftsTooLargeError)
  expect((await findDraft(pool, projectId, id))?.content).toEqual({ subject: 'öö' })
})

test('two concurrent requests together cannot exceed the maximum number of drafts', async () => {
  const projectId = await newProject(pool)
  await fill(projectId, DRAFTS_MAX - 1, 1)
  const hold = 'select from projects where id = $1 for update'
  const ends = await whileHeld(pool, hold, [projectId], () =>
    [1, 2].map(() =>
      create(projectId).then(
        () => 'stored',
        (error) => error.constructor,
      ),
    ),
  )
  expect(new Set(ends)).toEqual(new Set(['stored', TooManyDraftsError]))
})

test('a draft cannot be changed after another request has just sent it', async () => {
  const projectId = await newProject(pool)
  const { id } = await create(projectId)
  const [changed] = await whileHeld(pool, 'delete from drafts where id = $1', [id], () => [
    change(projectId, id, 'Late'),
  ])
  expect([changed, await countOf(projectId)]).toEqual([null, 0])
})
