import { generateKey } from '../../../shared/apiKey.ts'
import { searchKey } from '../../../shared/mail/search/searchTerms.ts'
import { PROJECT_SCOPES } from '../../../shared/scopes.ts'
import { createProject } from '../../../sql/account/projects/projects.ts'
import type { Queryable } from '../../../sql/db.ts'
import { requeueLostDeliveries } from '../../../sql/events/deliveries.ts'
import { deleteStaleEvents } from '../../../sql/events/events.ts'
import { forgetDeletedMessages } from '../../../sql/mail/messages/deleteMail.ts'
import { listUnindexed } from '../../../sql/mail/search/unindexed.ts'
import { releaseJobsOfDeadPools } from '../../../sql/queue/workerPools.ts'
import { talkSmtp } from '../../support/mail/smtpTalk.ts'
import { printed, startProcess } from '../../support/process/process.ts'
import { messagePath } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import { compare, perSecond, type Row } from '../measure.ts'
import { createSetting, type Setting } from '../setting.ts'
import { loadInBulk } from './bulkMessages.ts'

const PROJECTS = 10_000
const MESSAGES_EACH = 200
const LARGE = 1_000_000
const THREADS_EACH = 10
const WORDS = 12
const SLICE_MS = 1_000
const RECEIVED = 40

type Tenant = { id: string; key: string; address: string }
type Running = AsyncDisposable & { setting: Setting; url: string; smtpPort: number }

/**
 * Loads 3 million messages of 10,000 projects into the database, one of which has a million messages. The benchmark
 * compares this large project, and a small project beside it, with a small project that is alone in a database. The
 * load takes several minutes and 10 GB of disk space.
 */
export async function* millionRows(setting: Setting): AsyncGenerator<Row> {
  await using alone = await createSetting()
  const large = await newTenant(setting, 'large')
  const small = await newTenant(setting, 'small')
  const only = await newTenant(alone, 'alone')
  await load(setting, [large], LARGE)
  await load(setting, [small, ...(await addProjects(setting))], MESSAGES_EACH)
  await load(alone, [only], MESSAGES_EACH)
  await using here = await start(setting)
  await using there = await start(alone)
  for (const [tenant, what] of [
    [small, 'a small project'],
    [large, 'the one with a million'],
  ] as const) {
    for (const [name, path, body] of REQUESTS) {
      yield await compare({
        name: `${name}, ${what}`,
        unit: 'requests/s',
        detail: 'the same alone in a database',
        ours: () => rate(here, tenant, path, body),
        baseline: () => rate(there, only, path, body),
      })
    }
    yield await compare({
      name: `receive, ${what}`,
      unit: 'messages/s',
      detail: 'the same alone in a database',
      ours: () => receive(here, tenant),
      baseline: () => receive(there, only),
    })
  }
  yield await compare({
    name: 'housekeeping',
    unit: 'sweeps/s',
    detail: 'the same in a database with one project',
    ours: () => sweeps(setting),
    baseline: () => sweeps(alone),
  })
}

const REQUESTS: readonly [name: string, path: string, body?: string][] = [
  ['list 20', '/v0/messages?limit=20'],
  ['get', messagePath('<100@x.test>')],
  ['search a word in all', '/v0/messages?limit=20&q=common'],
  ['search a word in a tenth', '/v0/messages?limit=20&q=tenth'],
  ['search a word in 10', '/v0/messages?limit=20&q=rare'],
  ['threads', '/v0/threads?limit=20'],
  ['send', '/v0/messages/send', JSON.stringify({ to: ['a@x.test'], subject: 's', text: 't' })],
]

async function start(setting: Setting): Promise<Running> {
  const stack = new AsyncDisposableStack()
  const env = { ...setting.env, PORT: '0', SMTP_PORT: '0', LOG_LEVEL: 'info' }
  const portOf = async (file: string, ...args: string[]) => {
    const part = stack.use(startProcess(file, env, args))
    await printed(part, /"msg":"ready"/)
    return Number(/"port":(\d+)/.exec(part.stdout())?.[1] ?? 0)
  }
  const port = await portOf('api/main.ts')
  const smtpPort = await portOf('api/smtp/main.ts')
  await portOf('workers/main.ts', '--pool', 'inbound')
  const url = `http://127.0.0.1:${port}`
  return { setting, url, smtpPort, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const rate = ({ url }: Running, { key }: Tenant, path: string, body?: string): Promise<number> =>
  perSecond({
    lanes: 1,
    durationMs: SLICE_MS,
    async work() {
      const answer = await fetch(url + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body }),
      })
      if (!answer.ok) throw new Error(await answer.text())
      await answer.arrayBuffer()
    },
  })

async function receive({ setting, smtpPort }: Running, { address, id }: Tenant): Promise<number> {
  const stored = async () => {
    const { rows } = await setting.pool.query(
      `select count(*)::int as n from inbound_mails where project_id = $1 and state = 'stored'`,
      [id],
    )
    return rows[0].n as number
  }
  const before = await stored()
  const startMs = performance.now()
  await using talk = await talkSmtp(smtpPort)
  for (let n = 0; n < RECEIVED; n++) {
    await talk.say('MAIL FROM:<a@example.com>')
    await talk.say(`RCPT TO:<${address}>`)
    await talk.say('DATA')
    const head = `Message-ID: <${crypto.randomUUID()}@example.com>\r\nSubject: Received`
    const reply = await talk.send(`${head}\r\n\r\n${'Some words of a mail\r\n'.repeat(50)}.\r\n`)
    if (!reply.startsWith('250')) throw new Error(reply)
  }
  await waitFor('the mails', async () => (await stored()) === before + RECEIVED)
  return (RECEIVED * 1000) / (performance.now() - startMs)
}

const sweeps = ({ pool }: Setting): Promise<number> =>
  perSecond({
    lanes: 1,
    durationMs: SLICE_MS,
    async work() {
      await releaseJobsOfDeadPools(pool)
      await requeueLostDeliveries(pool)
      await forgetDeletedMessages(pool)
      await deleteStaleEvents(pool)
      await listUnindexed(pool, 200)
    },
  })

async function newTenant({ pool }: Setting, name: string): Promise<Tenant> {
  const key = generateKey('project')
  const address = `${name}@mail.test`
  const { project } = await createProject(pool, {
    name,
    purpose: 'SELLER',
    emailAddress: address,
    scopes: PROJECT_SCOPES,
    key,
  })
  return { id: project.id, key, address }
}

async function addProjects({ pool }: Setting): Promise<{ id: string }[]> {
  const { rows } = await pool.query<{ id: string }>(
    `insert into projects (id, name, purpose, email_address, payments_enabled)
     select 'prj_other' || n, 'Other', 'SELLER', 'other' || n || '@mail.test', false
     from generate_series(1, ${PROJECTS}) n returning id`,
  )
  return rows
}

async function load(
  setting: Setting,
  tenants: readonly { id: string }[],
  each: number,
): Promise<void> {
  await loadInBulk(setting, async (client) => {
    for (let at = 0; at < tenants.length; at += 1_000) {
      await insert(client, tenants.slice(at, at + 1_000), each)
    }
    return { largeProjects: each === LARGE ? tenants.map(({ id }) => id) : [] }
  })
}

async function insert(
  client: Queryable,
  tenants: readonly { id: string }[],
  each: number,
): Promise<void> {
  const ids = tenants.map(({ id }) => id)
  await client.query(
    `insert into threads (id, project_id, subject, created_at, updated_at, message_count)
     select 'thd_' || p || '_' || n, p, 'Thread', clock_timestamp(), clock_timestamp(), $2::int / ${THREADS_EACH}
     from unnest($1::text[]) p, generate_series(0, ${THREADS_EACH - 1}) n`,
    [ids, each],
  )
  await client.query(
    `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, from_addresses, subject,
       text_body, extracted_text, text_bytes, labels, created_at, search)
     select t.project_id, t.row, 'received', '<' || n || '@x.test>', sha256(('<' || n || '@x.test>')::bytea),
       array['sender@example.com'], 'Message ' || n, words.body, words.body, 2 * length(words.body),
       array['received', 'unread'], '2026-06-01'::timestamptz - n * interval '1 minute',
       (words.vector || format(' %L:1A', k.key || ':common')
         || case when n % 10 = 0 then format(' %L:5D', k.key || ':tenth') else '' end
         || case when n <= 10 then format(' %L:6D', k.key || ':rare') else '' end)::tsvector
     from unnest($1::text[], $2::text[]) k (project_id, key)
     join threads t on t.project_id = k.project_id
     join generate_series(1, $3::int) n on n % ${THREADS_EACH} = split_part(t.id, '_', 4)::int
     cross join lateral (
       select string_agg('word' || w, ' ') as body,
         string_agg(format('%L:%s', k.key || ':word' || w, 10 + i), ' ') as vector
       from (select i, (n * 7919::bigint + i * 104729) % 5000 as w from generate_series(1, ${WORDS}) i) picked
     ) words`,
    [ids, ids.map(searchKey), each],
  )
}
