/** Starts each part of the service separately in production mode, each with only its own secrets. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey } from '../../../shared/apiKey.ts'
import { SECRETS_OF, type Secret } from '../../../shared/config/secrets.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { some } from '../../support/database/extent.ts'
import {
  freePort,
  printed,
  type ServiceProcess,
  startProcess,
} from '../../support/process/process.ts'
import { createClient } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

const seed = (id: string) =>
  `${id}:${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')}`
const VALUES: Record<Secret, string> = {
  MASTER_KEYS: seed('one'),
  RECEIPT_SIGNING_KEYS: seed('receipts'),
  SETTLEMENT_KEYS: `0x${'17'.repeat(32)}`,
  RPC_URL: 'http://127.0.0.1:1',
  SMTP_RELAY_URL: 'direct',
}
const PARTS = {
  migrate: ['sql/main.ts'],
  api: ['api/main.ts'],
  smtp: ['api/smtp/main.ts'],
  inbound: ['workers/main.ts', '--pool', 'inbound'],
  outbound: ['workers/main.ts', '--pool', 'outbound'],
  webhooks: ['workers/main.ts', '--pool', 'webhooks'],
  vault: ['workers/main.ts', '--pool', 'vault'],
  purse: ['workers/main.ts', '--pool', 'purse'],
  payments: ['workers/main.ts', '--pool', 'payments'],
} satisfies Record<keyof typeof SECRETS_OF, string[]>
type Part = keyof typeof PARTS
const names = Object.keys(PARTS) as Part[]

let database: TestDatabase
const dataDir = mkdtempSync(join(tmpdir(), 'purser-apart-'))
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(async () => {
  await database[Symbol.asyncDispose]()
  rmSync(dataDir, { recursive: true, force: true })
})

function start(part: Part, secrets: readonly Secret[], more: object = {}): ServiceProcess {
  const [file = '', ...args] = PARTS[part]
  const env = {
    NODE_ENV: 'production',
    DATABASE_URL: database.url,
    DATA_DIR: join(dataDir, part),
    MAIL_DOMAIN: 'mail.test',
    BASE_URL: 'https://purser.example.com',
    PORT: '0',
    SMTP_PORT: '0',
    ...Object.fromEntries(secrets.map((name) => [name, VALUES[name]])),
    ...more,
  }
  return startProcess(file, env, args)
}

test('the table in docs/operating.md names for each process the secrets that the process needs', () => {
  const text = readFileSync(join(import.meta.dir, '../../../docs/operating.md'), 'utf8')
  const rows = [...text.matchAll(/^\| `bun run ([\w -]+)` +\| ([\w, ]+?) +\|$/gm)]
  const listed = rows.map(([, command, secrets]) => [
    command!.split(' ').at(-1),
    secrets === 'none' ? [] : secrets!.split(', '),
  ])
  expect(Object.fromEntries(listed)).toEqual(SECRETS_OF as object)
})

describe.each(some(names, 2))('the process %s starts alone in production', (part) => {
  test('a process starts with only the secrets that it needs', async () => {
    await using process = start(part, SECRETS_OF[part])
    if (part !== 'migrate') await printed(process, /"msg":"ready"/)
    else expect(await process.exited).toBe(0)
    expect(process.stdout() + process.stderr()).not.toContain('BASE_URL')
  })

  test.each([...SECRETS_OF[part]])(
    'if the setting %s is missing, a process that needs this secret ends with an error line that names the setting',
    async (missing) => {
      const others = SECRETS_OF[part].filter((name) => name !== missing)
      await using process = start(part, others)
      expect(await process.exited).toBe(78)
      expect(process.stderr()).toStartWith(`${missing}: `)
    },
  )
})

test.each(['api', 'smtp', 'inbound'] as const)(
  'the process %s answers /healthz on HEALTH_PORT, and stops answering when the test freezes the process',
  async (part) => {
    const port = await freePort()
    await using process = start(part, SECRETS_OF[part], { HEALTH_PORT: String(port) })
    const answer = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null)
      return response === null ? null : { status: response.status, body: await response.json() }
    }
    await printed(process, /"msg":"ready"/)
    expect(await answer()).toEqual({ status: 200, body: { status: 'ok' } })
    process.child.kill('SIGSTOP')
    const frozen = fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(500) })
    await expect(frozen).rejects.toThrow(/timed out/)
    process.child.kill('SIGCONT')
  },
)

test('a process does not read a secret of another process', async () => {
  await using process = start('smtp', [], { MASTER_KEYS: 'nonsense', SETTLEMENT_KEYS: 'nonsense' })
  await printed(process, /"msg":"ready"/)
})

test('if an API process in production has a local BASE_URL, it prints a warning', async () => {
  await using process = start('api', SECRETS_OF.api, { BASE_URL: 'http://127.0.0.1:3000' })
  await printed(process, /BASE_URL: must be the public https URL/)
})

test('a worker process refuses an unknown pool and names the existing pools', async () => {
  await using process = startProcess('workers/main.ts', {}, ['--pool', 'mail,none'])
  expect(await process.exited).toBe(78)
  expect(process.stderr()).toBe(
    '--pool: must be all, or some of mail, webhooks, vault, purse, payments, inbound, outbound, comma-separated\n',
  )
})

test('without a browser, the command migrate stores the first platform key and project key, and keys:new makes more keys', async () => {
  const [platformKey, projectKey] = [generateKey('platform'), generateKey('project')]
  const given = { BOOTSTRAP_PLATFORM_KEY: platformKey, BOOTSTRAP_PROJECT_KEY: projectKey }
  for (let twice = 0; twice < 2; twice++) {
    await using migrate = start('migrate', [], given)
    expect(await migrate.exited).toBe(0)
  }
  const port = await freePort()
  await using _api = start('api', SECRETS_OF.api, { PORT: String(port) })
  const whoami = async (key: string) =>
    (await createClient(`http://127.0.0.1:${port}`, key).get('/v0/whoami')).body
  await waitFor('the API', () => whoami(projectKey).catch(() => null))
  expect((await whoami(projectKey)).email).toBe('agent@mail.test')
  expect((await whoami(platformKey)).type).toBe('PLATFORM')

  const run = async (...args: string[]) => {
    const env = { DATABASE_URL: database.url, MAIL_DOMAIN: 'mail.test', NODE_ENV: 'production' }
    await using process = startProcess('sql/account/keys/newKeyMain.ts', env, args)
    return { code: await process.exited, out: process.stdout(), error: process.stderr() }
  }
  const platform = await run('--platform', 'operations')
  expect([platform.code, platform.out]).toEqual([0, expect.stringMatching(/^lopk-[0-9a-f]{64}\n$/)])
  expect((await whoami(platform.out.trim())).displayName).toBe('operations')
  const project = await run('--project', 'buyer-bot')
  expect((await whoami(project.out.trim())).email).toBe('buyer-bot@mail.test')
  expect(await run('--project', 'buyer-bot')).toMatchObject({
    code: 78,
    error: '--project: buyer-bot@mail.test is taken\n',
  })
  for (const args of [[], ['--platform'], ['--platform', 'a', '--project', 'b'], ['--other']]) {
    expect(await run(...args)).toMatchObject({
      code: 78,
      error: expect.stringMatching(/^usage: bun run keys:new/),
    })
  }
})
