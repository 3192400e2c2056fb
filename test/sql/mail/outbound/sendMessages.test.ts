/**
 * Tests send intents (requests to send mail) that are accepted together. Each has a thread, an idempotency key and the
 * send quota of its project.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { deleteThread } from '../../../../sql/mail/messages/deleteMail.ts'
import { acceptIntents } from '../../../../sql/mail/outbound/acceptIntents.ts'
import { findSent, type SendIntent } from '../../../../sql/mail/outbound/sendIntents.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  messageOf,
  newIntent,
  newSent,
  recipientsOf,
  type SentRow,
} from '../../../support/mail/mailRows.ts'
import { blocked, crossing, newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const accept = (intents: SendIntent[], limit: number | null = null) =>
  acceptIntents(pool, intents, limit)
/** Returns one word for each send intent: accepted, repeat, or the reason of the refusal. */
const wordsOf = async (intents: SendIntent[], limit: number | null = null) =>
  (await accept(intents, limit)).map(({ kind }) => kind)
const threadOf = async (threadRow: string) =>
  (await pool.query('select * from threads where row = $1', [threadRow])).rows[0]
const replyTo = ({ projectId, threadRow }: SentRow) => newIntent(projectId, { threadRow })
const keyed = (projectId: string, name: string, hash = 1) =>
  newIntent(projectId, { key: { name, requestHash: Buffer.alloc(32, hash) }, answer: { hash } })
const usedBy = async (projectId: string) =>
  (await pool.query('select used from send_quotas where project_id = $1', [projectId])).rows[0]
    ?.used

describe('a send intent (a request to send mail) becomes a message in its thread, unless the project or the thread is deleted', () => {
  test('a message for a deleted project or thread is refused', async () => {
    const [live, gone] = [await newSent(pool), await newSent(pool)]
    const { id } = await threadOf(live.threadRow)
    await deleteProject(pool, gone.projectId, null)
    await deleteThread(pool, live.projectId, id)
    const intents = [newIntent(gone.projectId), replyTo(live), newIntent(live.projectId)]
    expect(await wordsOf(intents)).toEqual(['gone', 'no thread', 'accepted'])
  })

  test('a message waits for a concurrent deletion of its project and is then refused', async () => {
    const projectId = await newProject(pool)
    const hold = `with locked as (select id from projects where id = $1 for update)
                  update projects p set deleted_at = now() from locked where p.id = locked.id`
    expect(
      await whileHeld(pool, hold, [projectId], () => [wordsOf([newIntent(projectId)])]),
    ).toEqual([['gone']])
  })

  test('a message waits for a concurrent deletion of its thread and is then refused', async () => {
    const sent = await newSent(pool)
    const deletion = 'delete from threads where row = $1'
    const words = await whileHeld(pool, deletion, [sent.threadRow], () => [
      wordsOf([replyTo(sent)]),
    ])
    expect(words).toEqual([['no thread']])
  })

  test('a message joins its thread, and the time of the thread does not move back', async () => {
    const sent = await newSent(pool)
    const other = await newSent(pool, { projectId: sent.projectId })
    const later = new Date(Date.now() + 3_600_000)
    await pool.query('update threads set updated_at = $2 where row = $1', [sent.threadRow, later])
    await accept([replyTo(sent), replyTo(sent), newIntent(sent.projectId)])
    const grown = await threadOf(sent.threadRow)
    expect([grown.message_count, grown.updated_at]).toEqual([3, later])
    expect(await threadOf(other.threadRow)).toMatchObject({ message_count: 1 })
  })

  test('a message goes to each recipient once, even if the message names a recipient twice', async () => {
    const sent = await newSent(pool, {
      to: ['a@b.example'],
      cc: ['a@b.example'],
      bcc: ['c@d.example'],
    })
    expect((await recipientsOf(pool, sent)).map(({ address }) => address)).toEqual([
      'a@b.example',
      'c@d.example',
    ])
  })

  test('messages with the same Message-ID in two projects go to the recipients of each project', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const messageId = '<same@mail.test>'
    await accept([
      newIntent(one, { messageId, to: ['one@example.com'] }),
      newIntent(two, { messageId, to: ['two@example.com'] }),
    ])
    const sent = (await messageOf(pool, one, messageId))!
    expect((await recipientsOf(pool, sent)).map(({ address }) => address)).toEqual([
      'one@example.com',
    ])
  })

  test('two batches of messages for the same threads in opposite orders are both accepted', async () => {
    const projectId = await newProject(pool)
    const threads: SentRow[] = []
    for (let n = 0; n < 4; n++) threads.push(await newSent(pool, { projectId }))
    const hold = 'select from threads where row = any ($1) for update'
    const held = threads.slice(0, 2).map(({ threadRow }) => threadRow)
    const words = await whileHeld(pool, hold, [held], () =>
      crossing(threads).map((list) => wordsOf(list.map(replyTo))),
    )
    expect(words.flat()).toEqual(Array(6).fill('accepted'))
  })
})

describe('two send intents (requests to send mail) of a project cannot both use one idempotency key', () => {
  test('the first mail in a batch that names an idempotency key gets the key, and another project can use the same key', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const intents = [keyed(one, 'k', 1), keyed(one, 'k', 2), keyed(two, 'k', 3), newIntent(one)]
    expect(await wordsOf(intents)).toEqual(['accepted', 'repeat', 'accepted', 'accepted'])
    expect(await wordsOf([keyed(one, 'k', 4)])).toEqual(['repeat'])
    expect((await findSent(pool, one, 'k'))?.sent.answer).toEqual({ hash: 1 })
    expect((await findSent(pool, two, 'k'))?.sent.answer).toEqual({ hash: 3 })
  })

  test('after a day an idempotency key expires, and a new send request may use the key', async () => {
    const projectId = await newProject(pool)
    await accept([keyed(projectId, 'k', 1)])
    const age = (interval: string) =>
      pool.query(
        'update idempotency_keys set created_at = now() - $2::interval where project_id = $1',
        [projectId, interval],
      )
    await age('23 hours 59 minutes')
    expect(await wordsOf([keyed(projectId, 'k', 2)])).toEqual(['repeat'])
    await age('24 hours 1 minute')
    expect(await findSent(pool, projectId, 'k')).toBeNull()
    expect(await wordsOf([keyed(projectId, 'k', 2)])).toEqual(['accepted'])
    expect(await findSent(pool, projectId, 'k')).toMatchObject({
      requestHash: Buffer.alloc(32, 2),
      sent: { answer: { hash: 2 } },
    })
    expect(await wordsOf([keyed(projectId, 'k', 3)])).toEqual(['repeat'])
  })

  test('if an idempotency key has no stored response yet, a second call with the key gets no stored response', async () => {
    const projectId = await newProject(pool)
    await pool.query(
      `insert into idempotency_keys (project_id, operation, key, request_hash) values ($1, 'send', 'k', '')`,
      [projectId],
    )
    expect(await findSent(pool, projectId, 'k')).toBeNull()
  })

  test('if two batches use the same expired idempotency keys in opposite orders, only one batch gets each key', async () => {
    const projectId = await newProject(pool)
    const names = ['a', 'b', 'c', 'd']
    await accept(names.map((name) => keyed(projectId, name)))
    await pool.query(`update idempotency_keys set created_at = now() - interval '25 hours'`)
    const hold = 'select from idempotency_keys where project_id = $1 and key = any ($2) for update'
    const words = await whileHeld(pool, hold, [projectId, ['a', 'b']], () =>
      crossing(names).map((list) => wordsOf(list.map((name) => keyed(projectId, name)))),
    )
    const taken = Array(4).fill('accepted')
    expect(words.flat().toSorted()).toEqual([...taken, 'repeat', 'repeat'])
  })
})

describe('a draft is sent only once, in the version that the request names', () => {
  const sentFrom = (projectId: string, draft: SendIntent['draft']) =>
    newIntent(projectId, { draft })
  const newDraft = async (projectId: string): Promise<{ id: string; version: number }> => {
    const { rows } = await pool.query(
      `insert into drafts (id, project_id, content, stored_bytes)
       values ('dr_' || gen_random_uuid(), $1, '{}', 0) returning id, version`,
      [projectId],
    )
    return rows[0]
  }

  test('a draft is sent only once, only by its own project, and only in the version that the send request names', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const draft = await newDraft(one)
    const later = { ...draft, version: draft.version + 1 }
    const words = await wordsOf([
      sentFrom(two, draft),
      sentFrom(one, later),
      sentFrom(one, draft),
      sentFrom(one, draft),
    ])
    expect(words).toEqual(['repeat', 'repeat', 'accepted', 'repeat'])
    expect(await wordsOf([sentFrom(one, draft)])).toEqual(['repeat'])
  })

  test('only one of two concurrent requests sends a draft', async () => {
    const projectId = await newProject(pool)
    const draft = await newDraft(projectId)
    const words = await whileHeld(
      pool,
      'select from drafts where id = $1 for update',
      [draft.id],
      () => [1, 2].map(() => wordsOf([sentFrom(projectId, draft)])),
    )
    expect(words.flat().toSorted()).toEqual(['accepted', 'repeat'])
  })

  test('a draft is kept if sending it would exceed the send quota', async () => {
    const projectId = await newProject(pool)
    const draft = await newDraft(projectId)
    expect(await wordsOf([sentFrom(projectId, draft)], 0)).toEqual(['over quota'])
    expect(await wordsOf([sentFrom(projectId, draft)], 1)).toEqual(['accepted'])
  })
})

describe('a project can send to as many recipients a day as its send quota allows', () => {
  const to = (projectId: string, count: number) =>
    newIntent(projectId, { to: Array.from({ length: count }, (_, n) => `a${n}@example.com`) })

  test('each project can use its send quota up to the last recipient', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    expect(await wordsOf([to(one, 2), to(two, 3)], 3)).toEqual(['accepted', 'accepted'])
    expect([await usedBy(one), await usedBy(two)]).toEqual([2, 3])
    expect(await wordsOf([to(one, 1)], 3)).toEqual(['accepted'])
    expect(await wordsOf([to(one, 1)], 3)).toEqual(['over quota'])
    expect(await usedBy(one)).toBe(3)
  })

  test('a send quota counts all sends of a day together, and starts again each day', async () => {
    const projectId = await newProject(pool)
    await accept([to(projectId, 3)], 3)
    await pool.query(`update send_quotas set day = day - 1 where project_id = $1`, [projectId])
    expect(await wordsOf([to(projectId, 2)], 3)).toEqual(['accepted'])
    expect(await usedBy(projectId)).toBe(2)
  })

  test('a send request that began before midnight and ends afterwards counts against the send quota of the new day', async () => {
    const projectId = await newProject(pool)
    await accept([to(projectId, 1)], 3)
    await pool.query(`update send_quotas set day = day + 1 where project_id = $1`, [projectId])
    expect(await wordsOf([to(projectId, 1)], 3)).toEqual(['accepted'])
    expect(await usedBy(projectId)).toBe(2)
    expect(await wordsOf([to(projectId, 2)], 3)).toEqual(['over quota'])
    expect(await usedBy(projectId)).toBe(2)
  })

  test('a send quota is not exceeded by two concurrent processes', async () => {
    const projectId = await newProject(pool)
    await accept([to(projectId, 1)], 3)
    const hold = 'select from send_quotas where project_id = $1 for update'
    const words = await whileHeld(pool, hold, [projectId], () =>
      [1, 2].map(() => wordsOf([to(projectId, 2)], 3)),
    )
    expect(words.flat().toSorted()).toEqual(['accepted', 'over quota'])
    expect(await usedBy(projectId)).toBe(3)
  })

  test('in a batch, the mails that exceed the send quota are refused, and the mails that fit are accepted', async () => {
    const projectId = await newProject(pool)
    const batch = [to(projectId, 3), to(projectId, 1), to(projectId, 2), to(projectId, 1)]
    expect(await wordsOf(batch, 2)).toEqual(['over quota', 'accepted', 'over quota', 'accepted'])
    expect(await usedBy(projectId)).toBe(2)
    expect(await wordsOf([to(projectId, 3)], 2)).toEqual(['over quota'])
  })

  test('a repeated idempotency key does not count against the send quota', async () => {
    const projectId = await newProject(pool)
    await accept([keyed(projectId, 'k')], 2)
    const words = await wordsOf([keyed(projectId, 'k'), to(projectId, 1)], 2)
    expect(words).toEqual(['repeat', 'accepted'])
    expect(await usedBy(projectId)).toBe(2)
  })

  test('the send quota is locked before the idempotency keys, even for the first mail of a project', async () => {
    const projectId = await newProject(pool)
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query(
      `insert into idempotency_keys (project_id, operation, key, request_hash) values ($1, 'send', 'z', '')`,
      [projectId],
    )
    const first = wordsOf([keyed(projectId, 'a'), keyed(projectId, 'z')], 9)
    await blocked(pool, 1)
    const second = wordsOf([to(projectId, 1)], 9)
    // If the rows were locked in another order, the second batch would change the quota while the third batch holds the
    // quota's lock. The test first waits until the second batch is blocked or has ended.
    await Promise.race([second, blocked(pool, 2)])
    const third = wordsOf([keyed(projectId, 'a')], 9)
    await blocked(pool, 3)
    await holder.query('commit')
    holder.release()
    expect(await Promise.all([first, second, third])).toEqual([
      ['accepted', 'repeat'],
      ['accepted'],
      ['repeat'],
    ])
  })

  test('the send quota is not exceeded even if a concurrent process stores the project’s first mail', async () => {
    const projectId = await newProject(pool)
    const hold = `insert into send_quotas (project_id, day, used, allowed)
                  values ($1, (now() at time zone 'UTC')::date, 2, 3)`
    const words = await whileHeld(pool, hold, [projectId], () => [
      wordsOf([to(projectId, 2), to(projectId, 1)], 3),
    ])
    expect(words).toEqual([['over quota', 'accepted']])
    expect(await usedBy(projectId)).toBe(3)
  })

  test('refused recipients do not count against the send quota, and without a quota nothing is counted', async () => {
    const projectId = await newProject(pool)
    await accept([to(projectId, 3)])
    expect(await usedBy(projectId)).toBeUndefined()
    const refused = [{ address: 'a0@example.com', reason: 'rule' as const }]
    expect(await wordsOf([{ ...to(projectId, 3), refused }], 2)).toEqual(['accepted'])
    expect(await usedBy(projectId)).toBe(2)
  })

  test('if two batches of mails contain mails of the same projects in opposite orders, both count against the send quotas', async () => {
    const ids: string[] = []
    for (let n = 0; n < 4; n++) ids.push(await newProject(pool))
    await accept(
      ids.map((id) => to(id, 1)),
      9,
    )
    const hold = 'select from send_quotas where project_id = any ($1) for update'
    const words = await whileHeld(pool, hold, [ids.slice(0, 2)], () =>
      crossing(ids).map((list) =>
        wordsOf(
          list.map((id) => to(id, 1)),
          9,
        ),
      ),
    )
    expect(words.flat()).toEqual(Array(6).fill('accepted'))
  })
})
