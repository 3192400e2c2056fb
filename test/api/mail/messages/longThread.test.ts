/** Tests changes of a thread that has very many messages. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { listThreads, newThread } from '../../../support/mail/mailThreads.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

/** Adds copies of a message to the thread of this message. */
const lengthen = (threadId: string, count: number) =>
  service.database.pool.query(
    `with first as (
       select m.* from messages m join threads t on t.row = m.thread_row where t.id = $1
     ), copied as (
       insert into messages (project_id, thread_row, direction, message_id, message_id_hash, content_hash,
         from_addresses, to_addresses, subject, text_body, labels, created_at, search)
       select project_id, thread_row, direction, '<' || n || '@copy.test>',
         sha256(convert_to('<' || n || '@copy.test>', 'UTF8')), sha256(convert_to(n::text, 'UTF8')),
         from_addresses, to_addresses, subject, text_body, labels, created_at, search
       from first, generate_series(1, $2::int) n
     )
     update threads set message_count = message_count + $2 where id = $1`,
    [threadId, count],
  )

/** Makes each change and each deletion of a message slow, as on a busy disk. */
const slowDown = () =>
  service.database.pool.query(`
    create function slow() returns trigger language plpgsql as
      $$ begin perform pg_sleep(0.004); return coalesce(new, old); end $$;
    create trigger slow before update of labels or delete on messages for each row execute function slow()`)

test('a thread can be labelled and deleted although its messages take longer than a statement may run', async () => {
  const agent = await newThread(service, ['long'])
  const [{ threadId }] = await listThreads(agent)
  await lengthen(threadId, 2_999)
  await slowDown()
  const path = `/v0/threads/${threadId}`
  const labelled = await agent.patch(path, { addLabels: ['done'], removeLabels: ['unread'] })
  expect([labelled.status, labelled.body.message]).toEqual([200, undefined])
  const { body } = await agent.get('/v0/messages?labels=unread')
  expect(body.count).toBe(0)
  expect((await agent.delete(path)).status).toBe(204)
  expect((await agent.get('/v0/messages')).body.count).toBe(0)
  expect((await agent.get(path)).status).toBe(404)
})
