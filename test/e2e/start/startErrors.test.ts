import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { some, testWhole } from '../../support/database/extent.ts'
import { startFakePostgres } from '../../support/database/fakePostgres.ts'
import { printed, startProcess } from '../../support/process/process.ts'
import '../../support/long.ts'

let database: TestDatabase
let folder: string
let taken: Server
let port: number

beforeAll(async () => {
  database = await createTestDatabase()
  folder = mkdtempSync(join(tmpdir(), 'purser-errors-'))
  writeFileSync(join(folder, 'file'), '')
  taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  port = (taken.address() as { port: number }).port
})
afterAll(async () => {
  taken.close()
  rmSync(folder, { recursive: true, force: true })
  await database[Symbol.asyncDispose]()
})

/**
 * Starts a process from an entry file and expects the start to fail. @returns the exit code and the output of the
 * process
 */
async function failToStart(file: string, env: Record<string, string>) {
  const failed = startProcess(file, { DATA_DIR: join(folder, crypto.randomUUID()), ...env })
  const code = await failed.exited
  return { code, stdout: failed.stdout(), lines: failed.stderr().trim().split('\n') }
}

const MASTER_KEYS = `test:${Buffer.alloc(32, 7).toString('base64')}`

/**
 * Returns the environment variables for a start on an existing database. They also disable the embedded devnet, unless
 * the test is about the devnet's port.
 */
const minimalEnv = (variable: string): Record<string, string> => ({
  ...PORTS,
  DATABASE_URL: database.url,
  MASTER_KEYS,
  ...(variable === 'DEVNET_PORT' ? {} : { RPC_URL: 'http://127.0.0.1:1' }),
})

const PORTS = { PORT: '0', SMTP_PORT: '0', DEVNET_PORT: '0' }

test.each(some(['PORT', 'SMTP_PORT', 'DEVNET_PORT']))(
  'npm start fails with one line if the port of %s is taken',
  async (variable) => {
    const env = { ...minimalEnv(variable), [variable]: String(port), LOG_LEVEL: 'fatal' }
    const { code, lines } = await failToStart('api/start.ts', env)
    expect(lines).toEqual([expect.stringContaining(`${variable}: port ${port}`)])
    expect(lines[0]).toContain('is taken by another program')
    expect(code).toBe(78)
  },
)

test('the command npm start fails with one line if HOST is not an address of this machine or DATA_DIR cannot be written', async () => {
  const host = await failToStart('api/start.ts', {
    ...minimalEnv('HOST'),
    HOST: '192.0.2.1',
    LOG_LEVEL: 'fatal',
  })
  expect(host).toMatchObject({
    code: 78,
    lines: [expect.stringMatching(/^HOST: 192\.0\.2\.1 is no address/)],
  })
  const directory = await failToStart('api/start.ts', { DATA_DIR: join(folder, 'file', 'data') })
  expect(directory).toMatchObject({
    code: 78,
    lines: [expect.stringMatching(/^DATA_DIR: .* cannot be written \(ENOTDIR\)/)],
  })
})

test('a part of the service fails to start with one error line if the port HEALTH_PORT is already used', async () => {
  const env = { DATABASE_URL: database.url, MASTER_KEYS, LOG_LEVEL: 'fatal', SMTP_PORT: '0' }
  const smtp = await failToStart('api/smtp/main.ts', { ...env, HEALTH_PORT: String(port) })
  expect(smtp).toMatchObject({
    code: 78,
    lines: [expect.stringMatching(/^HEALTH_PORT: port \d+ of 127\.0\.0\.1 is taken/)],
  })
})

testWhole(
  'if a part of the service is started alone and its port is already used, the start fails with one error line',
  async () => {
    const env = { DATABASE_URL: database.url, MASTER_KEYS, LOG_LEVEL: 'fatal' }
    const api = await failToStart('api/main.ts', { ...env, PORT: String(port) })
    const smtp = await failToStart('api/smtp/main.ts', { ...env, SMTP_PORT: String(port) })
    expect(api).toMatchObject({ code: 78, lines: [expect.stringMatching(/^PORT: port \d+ of/)] })
    expect(smtp).toMatchObject({
      code: 78,
      lines: [expect.stringMatching(/^SMTP_PORT: port \d+ of/)],
    })
  },
)

test('the service fails to start with one error line if the database refuses it, is missing, cannot be reached or is too old', async () => {
  const url = (change: (url: URL) => void) => {
    const changed = new URL(database.url)
    change(changed)
    return changed.href
  }
  await using old = await startFakePostgres({ version: '14.9' })
  const cases: [string, RegExp][] = [
    [
      url((to) => {
        to.password = 'wrong-password'
      }),
      /^DATABASE_URL: the database at .* refuses the login of user "purser"/,
    ],
    [
      url((to) => {
        to.pathname = '/nowhere'
      }),
      /^DATABASE_URL: there is no database "nowhere" at/,
    ],
    [
      url((to) => {
        to.port = '1'
      }),
      /^DATABASE_URL: no database answers at 127\.0\.0\.1:1 \(ECONNREFUSED\)/,
    ],
    [
      `postgres://purser:x@127.0.0.1:${port}/purser`,
      /^DATABASE_URL: no database answers at .*timeout/,
    ],
    [old.url, /^DATABASE_URL: PostgreSQL 14\.9 at .* is too old; use version 15 or newer/],
  ]
  for (const file of ['api/start.ts', 'sql/main.ts', 'workers/main.ts']) {
    // All entry files call the same function that checks the database, so one test case is enough.
    const asked = file === 'sql/main.ts' ? cases : cases.slice(0, 1)
    await Promise.all(
      asked.map(async ([DATABASE_URL, line]) => {
        const { code, lines } = await failToStart(file, { ...PORTS, DATABASE_URL })
        expect(lines).toEqual([expect.stringMatching(line)])
        expect(lines[0]).not.toContain('wrong-password')
        expect(code).toBe(78)
      }),
    )
  }
})

test('if a worker process starts before the database, it ends with exit code 1, and systemd starts it again', async () => {
  const env = { DATABASE_URL: 'postgres://purser:x@127.0.0.1:1/purser', MASTER_KEYS }
  const { code, lines } = await failToStart('workers/main.ts', { ...env, LOG_LEVEL: 'fatal' })
  expect(code).toBe(1)
  expect(lines).toEqual([expect.stringMatching(/^DATABASE_URL: no database answers at 127/)])
  const unit = readFileSync('deploy/systemd/purser-workers@.service', 'utf8')
  expect(unit).not.toContain(`RestartPreventExitStatus=${code}\n`)
})

testWhole(
  'if port 8545 is already used and DEVNET_PORT is not set, the devnet uses a free port and prints its number',
  async () => {
    const anvil = createServer()
    const held = await new Promise<boolean>((resolve) => {
      anvil.once('error', () => resolve(false))
      anvil.listen(8545, '127.0.0.1', () => resolve(true))
    })
    try {
      const { DEVNET_PORT: _, ...ports } = PORTS
      await using started = startProcess('api/start.ts', {
        ...ports,
        DATA_DIR: join(folder, 'devnet'),
        LOG_LEVEL: 'warn',
      })
      const [, devnetPort] = await printed(started, /Devnet\s+http:\/\/127\.0\.0\.1:(\d+)/)
      // Another test or another anvil process may already listen on port 8545, so the test only expects another port.
      expect(devnetPort).not.toBe('8545')
      expect(started.stderr()).toContain('port 8545 is taken')
    } finally {
      if (held) anvil.close()
    }
  },
)
