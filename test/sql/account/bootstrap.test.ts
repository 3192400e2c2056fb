/** Tests how the service finds or creates the first API keys and the first project when it starts. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey } from '../../../shared/apiKey.ts'
import { type Config, ConfigError, parseConfig } from '../../../shared/config/config.ts'
import { bootstrap, storeGivenKeys } from '../../../sql/account/bootstrap.ts'
import { revokeProjectKey } from '../../../sql/account/keys/keys.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { whileFailing } from '../../support/database/failingStatements.ts'
import '../../support/long.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'purser-bootstrap-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const platformKey = generateKey('platform')
const projectKey = generateKey('project')
let made = 0

/** Makes a configuration with a separate data directory. */
function configWith(about: Partial<Config> & { keys?: Partial<Config['bootstrap']> } = {}): Config {
  const { keys = {}, ...changes } = about
  const dataDir = mkdtempSync(join(directory, `${++made}-`))
  return {
    ...parseConfig({}),
    dataDir,
    mailDomain: 'mail.example',
    bootstrap: { platformKey: undefined, projectKey: undefined, ...keys },
    ...changes,
  }
}
const inChain = (config: Config, embeddedDevnet: boolean): Config => ({
  ...config,
  chain: { ...config.chain, embeddedDevnet },
})
const withDatabase = async (work: (database: TestDatabase) => Promise<void>) => {
  await using database = await createTestDatabase()
  await work(database)
}
const count = async ({ pool }: TestDatabase, table: string): Promise<number> =>
  (await pool.query(`select count(*)::int as n from ${table}`)).rows[0].n

describe('at the first start, the service creates the first API keys and the first project', () => {
  test('the first start creates a platform key and a project key in a file that only its owner can read, and prints a sign-in link', () =>
    withDatabase(async ({ url }) => {
      const config = configWith()
      const first = await bootstrap(url, config)
      const file = join(config.dataDir, 'first-keys.json')
      expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
        platformKey: first.platformKey,
        projectKey: first.projectKey,
      })
      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect(first.inboxAddress).toBe('agent@mail.example')
      expect(first.signInToken).toMatch(/^[\w-]{43}$/)
    }))

  test('if the database fails while the first project is stored, the start fails', () =>
    withDatabase(async ({ url }) => {
      const start = whileFailing('insert into projects', () => bootstrap(url, configWith()))
      await expect(start).rejects.toThrow('the server stops')
    }))

  test('if a power failure has emptied the file with the first keys, the next start creates new keys', () =>
    withDatabase(async ({ url }) => {
      const config = configWith()
      writeFileSync(join(config.dataDir, 'first-keys.json'), '')
      const { platformKey: made } = await bootstrap(url, config)
      expect((await bootstrap(url, config)).platformKey).toBe(made)
    }))

  test('if the settings contain only the platform key or only the project key, the first start creates the missing key', () =>
    withDatabase(async ({ url }) => {
      const config = configWith({ keys: { projectKey } })
      const first = await bootstrap(url, config)
      expect(first.projectKey).toBe(projectKey)
      expect(first.platformKey).not.toBe(platformKey)
      expect((await bootstrap(url, config)).platformKey).toBe(first.platformKey)
    }))

  test('at the first start, the first project can receive payments only on the embedded devnet', () =>
    withDatabase(async ({ url, pool }) => {
      await bootstrap(url, inChain(configWith({ keys: { platformKey, projectKey } }), true))
      const other = generateKey('project')
      await bootstrap(url, inChain(configWith({ keys: { platformKey, projectKey: other } }), false))
      const { rows } = await pool.query(
        'select email_address, pay_to is null as unpaid, payments_enabled from projects order by created_at',
      )
      expect(rows).toEqual([
        { email_address: 'agent@mail.example', unpaid: false, payments_enabled: true },
        { email_address: 'agent-2@mail.example', unpaid: true, payments_enabled: false },
      ])
    }))
})

describe('at a later start, the service uses the API keys of the first start again', () => {
  test('a later start uses the keys of the first start, and creates no second project', () =>
    withDatabase(async (database) => {
      const config = configWith()
      const first = await bootstrap(database.url, config)
      const second = await bootstrap(database.url, config)
      expect([second.platformKey, second.projectKey]).toEqual([first.platformKey, first.projectKey])
      expect(second.inboxAddress).toBe(first.inboxAddress)
      expect(await count(database, 'projects')).toBe(1)
      expect(await count(database, 'api_keys')).toBe(2)
    }))

  test('a later start prefers the keys in the settings to the keys in the file', () =>
    withDatabase(async ({ url }) => {
      const config = configWith()
      await bootstrap(url, config)
      const given = { ...config, bootstrap: { platformKey, projectKey } }
      expect(await bootstrap(url, given)).toMatchObject({ platformKey, projectKey })
    }))

  test('if a first key was revoked, a later start does not make it valid again', () =>
    withDatabase(async (database) => {
      const config = configWith()
      await bootstrap(database.url, config)
      const { rows } = await database.pool.query('select id from projects')
      await revokeProjectKey(database.pool, rows[0].id)
      expect((await bootstrap(database.url, config)).inboxAddress).toBeNull()
      expect(await count(database, 'projects')).toBe(1)
    }))
})

describe('at a start in production, the service creates no API key and prints no sign-in link', () => {
  test.each([
    ['BOOTSTRAP_PLATFORM_KEY', { projectKey }],
    ['BOOTSTRAP_PROJECT_KEY', { platformKey }],
    ['BOOTSTRAP_PLATFORM_KEY', {}],
  ])('a start in production without %s fails and creates no key', (name, keys) =>
    withDatabase(async (database) => {
      const config = configWith({ production: true, keys })
      const start = bootstrap(database.url, config)
      await expect(start).rejects.toBeInstanceOf(ConfigError)
      await expect(start).rejects.toThrow(
        `${name}: must be set when NODE_ENV is production; keys are generated in development only`,
      )
      expect(await count(database, 'api_keys')).toBe(0)
    }),
  )

  test('a start in production reads both keys from the file of an earlier start, and prints no sign-in link', () =>
    withDatabase(async ({ url }) => {
      const config = configWith({ production: true })
      writeFileSync(
        join(config.dataDir, 'first-keys.json'),
        JSON.stringify({ platformKey, projectKey }),
      )
      expect(await bootstrap(url, config)).toEqual({
        platformKey,
        projectKey,
        inboxAddress: 'agent@mail.example',
        signInToken: null,
      })
    }))
})

describe('the migration stores the API keys that the settings contain', () => {
  test.each<[string, Partial<Config['bootstrap']>, string[], number]>([
    ['none', {}, [], 0],
    ['the platform key', { platformKey }, ['platform'], 1],
    ['the project key with its project', { projectKey }, ['project'], 1],
    ['both keys', { platformKey, projectKey }, ['platform', 'project'], 2],
  ])('the migration stores the given keys: %s', (_name, keys, stored, keyCount) =>
    withDatabase(async (database) => {
      expect(await storeGivenKeys(database.url, configWith({ keys }))).toEqual(stored)
      expect(await count(database, 'api_keys')).toBe(keyCount)
      expect(await count(database, 'projects')).toBe(stored.includes('project') ? 1 : 0)
    }),
  )
})
