import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { exportRows } from '../../../../sql/account/projects/exportRows.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newEvent } from '../../../support/mail/calendar/calendarRows.ts'
import { newSent, rawMail, receive } from '../../../support/mail/mailRows.ts'
import { newKeyring, newPurse } from '../../../support/purse/purseRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const rowsOf = async (projectId: string, wanted: string): Promise<any[]> =>
  (await Array.fromAsync(exportRows(pool, projectId))).filter(({ kind }) => kind === wanted)

/** Names each table of a project that the export leaves out, and the reason. */
const LEFT_OUT: Record<string, string> = {
  attachment_reading: 'a count of today',
  calendar_instances: 'computed from the events',
  deleted_messages: 'the ids of messages that the owner deleted',
  endpoint_trials: 'the last trial of an endpoint, which the next trial replaces',
  event_streams: 'the place in a list that the export does not have',
  events: 'short notes about rows that the export has',
  idempotency_keys: 'answers to repeated requests, kept for a day',
  inbound_mails: 'mail on its way into the inbox, and mail that a rule refused',
  message_labels: 'the labels of the messages',
  offer_counts: 'statistics',
  outbound_mails: 'the queue of sent mail, whose recipients stand at the messages',
  payment_checks: 'checks of a payment that end with the payment',
  person_projects: 'the people belong to the organization',
  project_limits: 'limits that the operator sets',
  project_retention: 'a field of the line of the project',
  project_storage: 'a count of bytes',
  project_usage: 'counts of requests',
  project_writes: 'a lock',
  purse_gas: 'a count of today',
  search_leaves: 'an index of the messages',
  search_pending: 'an index of the messages',
  search_segments: 'an index of the messages',
  send_quotas: 'counts of today',
  settlement_budgets: 'counts of today',
  thread_identifiers: 'an index of the messages',
  vault_uses: 'answers for an hour, and each use stands in the log',
}

test('every table with a project is part of the export, or is listed with the reason why it is left out', async () => {
  const { rows } = await pool.query<{ name: string }>(
    `select table_name as name from information_schema.columns
     where table_schema = 'public' and column_name = 'project_id'`,
  )
  const read = new Set<string>()
  const recorder = {
    async query({ text }: { text: string }) {
      for (const [, table] of text.matchAll(/\b(?:from|join) (\w+) /g)) read.add(table!)
      return { rows: [] }
    },
  }
  await Array.fromAsync(exportRows(recorder as never, 'prj'))
  const missing = rows.map(({ name }) => name).filter((name) => !read.has(name))
  expect(missing.toSorted()).toEqual(Object.keys(LEFT_OUT).toSorted())
})

test('an export contains each known recipient and each event once, although the export reads the rows in several pages', async () => {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  await pool.query(
    `insert into known_recipients (project_id, recipient)
     select p, 'r' || n || '@b.example' from unnest($1::text[]) p, generate_series(1, 450) n`,
    [[projectId, other]],
  )
  await pool.query(
    `insert into own_events (project_id, uid_hash, event)
     select p, sha256(n::text::bytea), jsonb_build_object('uid', n) from unnest($1::text[]) p, generate_series(1, 120) n`,
    [[projectId, other]],
  )
  const known = (await rowsOf(projectId, 'knownRecipient')).map(({ recipient }) => recipient)
  expect(known).toHaveLength(450)
  expect(new Set(known).size).toBe(450)
  const own = (await rowsOf(projectId, 'ownEvent')).map(({ event }) => event.uid)
  expect(own.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 120 }, (_, n) => n + 1))
})

test('an export has each answer to an invitation once, with the attendee and the comment', async () => {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  const uid_hash = createHash('sha256').update('weekly').digest()
  const events = [
    await newEvent(pool, projectId, { uid_hash, is_own: true, instance: '-infinity' }),
    await newEvent(pool, projectId, { uid_hash, is_own: true, instance: '2031-02-02T10:00:00Z' }),
    await newEvent(pool, projectId, { is_own: true }),
    await newEvent(pool, other, { is_own: true }),
  ]
  await pool.query(
    `insert into calendar_answers (event_row, instance, address, state, stamp, comment)
     select e, i, 'a' || n || '@b.example', 'declined', now(), 'late'
     from unnest($1::bigint[]) e, generate_series(1, 150) n,
       unnest(array['-infinity', '2031-02-09T10:00:00Z']::timestamptz[]) i`,
    [events],
  )
  const answers = await rowsOf(projectId, 'eventAnswer')
  expect(answers).toHaveLength(3 * 150 * 2)
  expect(answers[0]).toMatchObject({
    address: expect.any(String),
    state: 'declined',
    comment: 'late',
  })
  expect(answers.filter(({ recurrenceId }) => recurrenceId === null)).toHaveLength(450)
  expect(await rowsOf(projectId, 'event')).toHaveLength(3)
})

test('an export has the text of each read attachment, and the codes and links of each message', async () => {
  const projectId = await newProject(pool)
  await receive(pool, projectId, rawMail({ text: 'Your verification code is 482913.' }))
  await receive(pool, projectId, rawMail({ text: 'no code' }))
  await pool.query(
    `insert into attachment_texts (message_row, attachment_id, project_id, state, kind, content, chars)
     select row, 'att' || n, project_id, state, 'csv', 'cell ' || n, 6 from messages, generate_series(1, 9) n,
       unnest(array['ready']) state where project_id = $1`,
    [projectId],
  )
  await pool.query(
    `insert into attachment_texts (message_row, attachment_id, project_id) select row, 'waits', project_id
     from messages where project_id = $1`,
    [projectId],
  )
  const texts = await rowsOf(projectId, 'attachmentText')
  const messages = await rowsOf(projectId, 'message')
  const place = ({ messageId, attachmentId }: any) => `${messageId} ${attachmentId}`
  expect(new Set(texts.map(place)).size).toBe(18)
  expect(texts).toHaveLength(18)
  expect(texts[0]).toMatchObject({ messageId: messages[0].messageId, text: 'cell 1', of: 'csv' })
  expect(messages[0].codes).toMatchObject([{ value: '482913' }])
})

test('an export has the state of each recipient of sent mail', async () => {
  const { projectId } = await newSent(pool, { to: ['bob@example.com', 'ada@example.com'] })
  const [message] = await rowsOf(projectId, 'message')
  expect(message.recipients).toMatchObject([
    { address: 'ada@example.com', state: 'queued', attempts: 0 },
    { address: 'bob@example.com', state: 'queued', attempts: 0 },
  ])
})

test('an export has the purse (wallet), the API keys and the OAuth grants (consents) of a project without any secret', async () => {
  const keyring = await newKeyring(pool)
  const { projectId } = await newPurse(pool, keyring)
  const [purse] = await rowsOf(projectId, 'purse')
  expect(purse).toMatchObject({
    address: expect.stringMatching(/^0x[0-9a-f]{40}$/i),
    retiredAt: null,
  })
  await pool.query(
    `insert into oauth_grants (id, project_id, client_id, client_name, redirect_host, scopes, resource, actor, expires_at)
     values ('grt_1', $1, 'https://chat.example/client', 'Chat', 'chat.example', '{mail:read}', 'https://x.example/mcp',
       'owner', now() + interval '1 day')`,
    [projectId],
  )
  expect(await rowsOf(projectId, 'grant')).toMatchObject([
    { grantId: 'grt_1', clientName: 'Chat', scopes: ['mail:read'], revokedAt: null },
  ])
  const keys = await rowsOf(projectId, 'apiKey')
  expect(keys).toMatchObject([{ prefix: expect.stringMatching(/^lo/), revokedAt: null }])
  const { rows } = await pool.query(
    `select encode(key_hash, 'hex') as hash from api_keys where project_id = $1`,
    [projectId],
  )
  expect(JSON.stringify(keys)).not.toContain(rows[0].hash)
})
