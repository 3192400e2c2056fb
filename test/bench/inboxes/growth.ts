import { generateKey } from '../../../shared/apiKey.ts'
import { PROJECT_SCOPES } from '../../../shared/scopes.ts'
import { createProject } from '../../../sql/account/projects/projects.ts'
import { printed, startProcess } from '../../support/process/process.ts'
import { compare, perSecond, type Row } from '../measure.ts'
import { createSetting, type Setting } from '../setting.ts'

const SLICE_MS = 1_000
const PROJECTS = 10_000
const MESSAGES_EACH = 20
const DELIVERIES = 300_000
const CREDENTIALS = 10_000

type Tenant = { id: string; key: string }

/**
 * Compares requests of a large project with requests of a small project, and then measures how they change when other
 * projects are added.
 */
export async function* growthRows(setting: Setting): AsyncGenerator<Row> {
  await using api = await startApi(setting)
  const [small, large] = [await newTenant(setting, 'small'), await newTenant(setting, 'large')]
  await addDeliveries(setting, small, 100)
  await addDeliveries(setting, large, DELIVERIES)
  await addCredentials(setting, small, 100)
  await addCredentials(setting, large, CREDENTIALS)
  await setting.pool.query('vacuum analyze webhook_deliveries, credentials, credential_versions')
  for (const [name, path] of [
    [
      `deliveries of a status nobody has, ${DELIVERIES} deliveries`,
      '/v0/webhooks/deliveries?status=exhausted',
    ],
    [`deliveries, ${DELIVERIES} deliveries`, '/v0/webhooks/deliveries?limit=20'],
    [`credentials that expire, ${CREDENTIALS} credentials`, '/v0/vault?expiringWithin=7d'],
  ] as const) {
    yield await compare({
      name,
      unit: 'requests/s',
      detail: 'the same for a tenant with 100',
      ours: () => rate(api.url, large, path),
      baseline: () => rate(api.url, small, path),
    })
  }
  yield* othersRows(setting)
}

/** Compares a small project in a database with 10,000 projects with the same project alone in a database. */
async function* othersRows(setting: Setting): AsyncGenerator<Row> {
  await using alone = await createSetting()
  await addProjects(setting)
  const [here, there] = [await newTenant(setting, 'among'), await newTenant(alone, 'alone')]
  await addMessages(setting, here.id, 200)
  await addMessages(alone, there.id, 200)
  await setting.pool.query('vacuum analyze')
  await alone.pool.query('vacuum analyze')
  await using crowded = await startApi(setting)
  await using quiet = await startApi(alone)
  for (const [name, path] of [
    ['list 20', '/v0/messages?limit=20'],
    ['get', `/v0/messages/${encodeURIComponent('<100@x.test>')}`],
    ['search', '/v0/messages?limit=20&q=word'],
    ['threads', '/v0/threads?limit=20'],
    ['whoami', '/v0/whoami'],
  ] as const) {
    yield await compare({
      name: `${name}, among ${PROJECTS} projects`,
      unit: 'requests/s',
      detail: 'the same without other projects',
      ours: () => rate(crowded.url, here, path),
      baseline: () => rate(quiet.url, there, path),
    })
  }
  const body = JSON.stringify({ to: ['a@example.com'], subject: 's', text: 't' })
  yield await compare({
    name: `send, among ${PROJECTS} projects`,
    unit: 'requests/s',
    detail: 'the same without other projects',
    ours: () => rate(crowded.url, here, '/v0/messages/send', body),
    baseline: () => rate(quiet.url, there, '/v0/messages/send', body),
  })
}

async function startApi({ env }: Setting) {
  const api = startProcess('api/main.ts', { ...env, PORT: '0', LOG_LEVEL: 'info' })
  const url = `http://127.0.0.1:${(await printed(api, /"port":(\d+)/))[1]}`
  return { url, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() }
}

const rate = (url: string, { key }: Tenant, path: string, body?: string): Promise<number> =>
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

async function newTenant({ pool }: Setting, name: string): Promise<Tenant> {
  const key = generateKey('project')
  const { project } = await createProject(pool, {
    name,
    purpose: 'SELLER',
    emailAddress: `${name}@mail.test`,
    scopes: PROJECT_SCOPES,
    key,
  })
  return { id: project.id, key }
}

const addDeliveries = ({ pool }: Setting, { id }: Tenant, count: number) =>
  pool.query(
    `insert into webhook_deliveries (id, project_id, event, idempotency_key, url, body, status, created_at)
     select $1 || n, $1, 'payment.received', $1 || n, 'https://x.test', '{}', 'delivered',
            '2026-06-01'::timestamptz - n * interval '1 second'
     from generate_series(1, $2::int) n`,
    [id, count],
  )

const addCredentials = ({ pool }: Setting, { id }: Tenant, count: number) =>
  pool.query(
    `with stored as (
       insert into credentials (id, project_id, name, version)
       select $1 || n, $1, 'bare-' || n, 1 from generate_series(1, $2::int) n returning row
     )
     insert into credential_versions
       (credential_row, version, type, metadata, metadata_bytes, has_totp, key_id, wrapped_key, ciphertext)
     select row, 1, 'LOGIN', '{}', 2, false, 'none', '', '' from stored`,
    [id, count],
  )

const addProjects = ({ pool }: Setting) =>
  pool
    .query(
      `with added as (
       insert into projects (id, name, purpose, email_address, pay_to, payments_enabled)
       select 'prj_other' || n, 'Other', 'SELLER', 'other' || n || '@mail.test', null, false
       from generate_series(1, ${PROJECTS}) n returning id
     )
     insert into threads (id, project_id, subject, created_at, updated_at, message_count)
     select 'thd_' || id, id, 'Thread', clock_timestamp(), clock_timestamp(), ${MESSAGES_EACH} from added`,
    )
    .then(() => pool.query(MESSAGES, ['prj_other%', MESSAGES_EACH]))

async function addMessages({ pool }: Setting, projectId: string, count: number): Promise<void> {
  await pool.query(
    `insert into threads (id, project_id, subject, created_at, updated_at, message_count)
     values ('thd_' || $1, $1, 'Thread', clock_timestamp(), clock_timestamp(), $2)`,
    [projectId, count],
  )
  await pool.query(MESSAGES, [projectId, count])
}

const MESSAGES = `
  insert into messages (project_id, thread_row, direction, message_id, message_id_hash, subject, text_body, extracted_text,
    text_bytes, labels, created_at, search)
  select t.project_id, t.row, 'received', '<' || n || '@x.test>', sha256(('<' || n || '@x.test>')::bytea), 'Message ' || n,
    'word', 'word', 8, array['received'], '2026-06-01'::timestamptz - n * interval '1 minute', ''::tsvector
  from threads t, generate_series(1, $2::int) n where t.project_id like $1`
