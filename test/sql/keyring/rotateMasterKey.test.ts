import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { type ApiServer, startApi } from '../../../api/http/server.ts'
import { ConfigError, parseConfig } from '../../../shared/config/config.ts'
import { progressBar } from '../../../shared/progressBar.ts'
import { Keyring } from '../../../shared/vault/envelope.ts'
import { openWebhookSecret, storedSecret } from '../../../sql/events/webhookSecrets.ts'
import { checkMasterKeys } from '../../../sql/keyring/keyring.ts'
import { BrokenRowsError } from '../../../sql/keyring/rotation.ts'
import { sealData } from '../../../sql/vault/credentialVersions.ts'
import { testWhole } from '../../support/database/extent.ts'
import { silentLog } from '../../support/logs.ts'
import { printed, startProcess } from '../../support/process/process.ts'
import {
  type Agent,
  type Client,
  createClient,
  startTestService,
  type TestService,
} from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const pair = (id: string) => `${id}:${randomBytes(32).toString('base64')}`
const OLD = pair('old')
const NEW = pair('new')
const NEXT = pair('next')
const LAST = pair('last')

let service: TestService
let agent: Agent
const others: ApiServer[] = []
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false, env: { MASTER_KEYS: OLD } })
  agent = await service.newAgent()
})
afterAll(async () => {
  await Promise.all(others.map((api) => api.stop()))
  await service[Symbol.asyncDispose]()
})

/** Starts an additional API process with the given master keys. */
function clientWith(keys: string): Client {
  const { masterKeys } = parseConfig({ MASTER_KEYS: keys })
  const api = startApi({ ...service.config, masterKeys }, service.database.url, silentLog)
  others.push(api)
  return createClient(`http://127.0.0.1:${api.port}`, agent.key)
}

const env = (keys: string) => ({
  DATABASE_URL: service.database.url,
  DATA_DIR: service.config.dataDir,
  MASTER_KEYS: keys,
})
const rotate = (keys: string) => startProcess('sql/keyring/rotateMain.ts', env(keys))

/** Returns all rows that the rotation of master keys can change. */
async function stored() {
  const { rows } = await service.database.pool.query(
    `select 'credential' as kind, credential_row::text as id, version, key_id, wrapped_key, ciphertext
     from credential_versions
     union all
     select 'webhook', id, 0, webhook_key_id, webhook_wrapped_key, webhook_ciphertext from seller_endpoints
     union all
     select 'key', id, 0, null, check_value, null from master_keys
     order by 1, 2, 3`,
  )
  return rows
}
const underKey = async (id: string) => (await stored()).filter((row) => row.key_id === id).length

const MANY = 1_200
/** Inserts many small credentials, which is faster than storing them through the API. */
async function fill(): Promise<void> {
  const keyring = new Keyring(service.config.masterKeys!)
  const projectId = agent.project.id
  const names = Array.from({ length: MANY }, (_, n) => `many ${n}`)
  const sealed = names.map((name) =>
    sealData(keyring, { projectId, name, version: 1, data: { name } }),
  )
  await service.database.pool.query(
    `with made as (
       insert into credentials (id, project_id, name, version)
       select md5(name), $1, name, 1 from unnest($2::text[]) name returning row, name)
     insert into credential_versions (credential_row, version, type, metadata, metadata_bytes, has_totp, key_id,
                                      wrapped_key, ciphertext)
     select m.row, 1, 'CUSTOM', '{}', 2, false, 'old', s.wrapped_key, s.ciphertext
     from unnest($2::text[], $3::bytea[], $4::bytea[]) s (name, wrapped_key, ciphertext) join made m using (name)`,
    [
      projectId,
      names,
      sealed.map(({ wrappedKey }) => wrappedKey),
      sealed.map(({ ciphertext }) => ciphertext),
    ],
  )
}

test('a master key rotation refuses wrong and missing keys, runs while the service works, and resumes after kill −9', async () => {
  const { pool } = service.database
  const backupCodes = Array.from({ length: 20 }, (_, n) => `b${n}`)
  for (let n = 1; n <= 3; n++) {
    await agent.put(path('kept'), { type: 'LOGIN', data: { password: `p${n}`, backupCodes } })
  }
  const { body: endpoint } = await agent.put('/v0/sellers/endpoints', {
    urlPattern: 'https://api.example.com/a',
    priceUsdc: '0.01',
    network: 'base-sepolia',
    webhookUrl: 'http://127.0.0.1:1/hook',
  })
  // An older release of the service stored the webhook secret in plain text, so the rotation must also encrypt such a
  // secret.
  await pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network, webhook_url, webhook_secret)
     values ('se_plain', $1, 'x', 'x', 1, 'base-sepolia', 'http://127.0.0.1:1/', 'whsec_plain')`,
    [agent.project.id],
  )
  await fill()
  const before = await stored()

  for (const [keys, line] of [
    [NEW, 'MASTER_KEYS: lacks "old", which encrypts stored secrets'],
    [
      `${NEW},${pair('old')}`,
      'MASTER_KEYS: the key "old" differs from the key registered under that id',
    ],
    [
      'new:short',
      'MASTER_KEYS: its value must be comma-separated id:base64 pairs, each of a key of 32 bytes',
    ],
  ] as const) {
    await using refused = rotate(keys)
    expect([await refused.exited, refused.stderr().trim()]).toEqual([78, line])
    expect(await stored()).toEqual(before)
  }

  // If a concurrent transaction locks rows, the master key rotation first changes all other rows, and waits for the
  // locked rows only at its end.
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query(
      `select from credential_versions v join credentials c on c.row = v.credential_row
       where c.name like 'many 11__' for update of v`,
    )
    const killed = rotate(`${NEW},${OLD}`)
    await waitFor('all but the held ones', async () => (await underKey('old')) === 100)
    await printed(killed, /\[#+-*\] +\d+ % {2}\d+ of \d+ secrets\n/)
    const both = clientWith(`${NEW},${OLD}`)
    expect((await both.get(path('many 5'))).body.data).toEqual({ name: 'many 5' })
    expect((await both.get(path('many 1150'))).body.data).toEqual({ name: 'many 1150' })
    expect((await both.post(path('kept', '/totp/backup'))).body.code).toBe('b0')
    expect((await both.put(path('online'), { type: 'CUSTOM', data: { a: 1 } })).status).toBe(200)
    killed.child.kill('SIGKILL')
    expect(await killed.exited).toBe('SIGKILL')
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  expect(await underKey('old')).toBe(100)

  await using finishing = rotate(`${NEW},${OLD}`)
  expect(await finishing.exited).toBe(0)
  expect(finishing.stdout()).toBe(
    '100 secrets rewrapped under "new"; MASTER_KEYS no longer needs old\n',
  )
  expect(await underKey('old')).toBe(0)

  // After the rotation the data keys are encrypted with the new master key, and the ciphertexts have not changed.
  const key = (row: any) => `${row.kind} ${row.id} ${row.version}`
  const after = new Map((await stored()).map((row) => [key(row), row]))
  let compared = 0
  for (const row of before) {
    if (row.kind !== 'credential') continue
    const now = after.get(key(row))
    expect(now.wrapped_key.equals(row.wrapped_key)).toBe(false)
    if (now.ciphertext.equals(row.ciphertext)) compared++
  }
  // The rotation of master keys changed no ciphertext. Only one credential version has a new ciphertext, because a
  // backup code was taken from it during the rotation.
  expect(compared).toBe(MANY + 3 - 1)

  const fresh = clientWith(NEW)
  for (const n of [1, 2, 3]) {
    const { body } = await fresh.get(path('kept', `/versions/${n}`))
    expect(body.data.password).toBe(`p${n}`)
  }
  for (const n of [0, 1_100, MANY - 1]) {
    expect((await fresh.get(path(`many ${n}`))).body.data).toEqual({ name: `many ${n}` })
  }
  const newRing = new Keyring(parseConfig({ MASTER_KEYS: NEW }).masterKeys!)
  const { rows } = await pool.query('select * from seller_endpoints order by id = $1', [
    endpoint.endpointId,
  ])
  const secrets = rows.map((row) => {
    const { id, project_id: projectId, webhook_secret } = row
    expect(webhook_secret).toBeNull()
    return openWebhookSecret(newRing, { projectId, id, secret: storedSecret(row)! })
  })
  expect(secrets).toEqual(['whsec_plain', endpoint.webhookSecret])

  await using again = rotate(NEW)
  expect(await again.exited).toBe(0)
  expect(again.stdout()).toBe('0 secrets rewrapped under "new"; it is the only key\n')
})

test('a master key rotation causes no error and loses no write while other calls write, read and delete secrets', async () => {
  const client = clientWith(`${NEXT},${NEW}`)
  const names = Array.from({ length: 12 }, (_, n) => `busy ${n}`)
  const last = new Map<string, string>()
  let rotating = true
  const writers = names.map(async (name, at) => {
    for (let n = 0; rotating || n < 5; n++) {
      if (n % 7 === 6) {
        expect((await client.delete(path(name))).status).toBe(204)
      }
      const value = `${name} ${n}`
      const put = await client.put(path(name), {
        type: 'CUSTOM',
        data: { value, backupCodes: ['a', 'b'] },
      })
      expect(put.status).toBe(200)
      last.set(name, value)
      const pop = await client.post(path(name, '/totp/backup'))
      expect(pop.body).toEqual({ code: 'a', remaining: 1 })
      expect((await client.get(path(`many ${at * 90 + (n % 90)}`))).status).toBe(200)
      expect((await client.get(path(name))).body.data.value).toBe(value)
    }
  })
  const process = rotate(`${NEXT},${NEW}`)
  const done = process.exited.finally(() => {
    rotating = false
  })
  await Promise.all(writers)
  expect([await done, process.stderr()]).toEqual([0, expect.stringMatching(/100 %/)])
  expect(await underKey('next')).toBe((await stored()).filter((row) => row.kind !== 'key').length)
  const only = clientWith(NEXT)
  for (const [name, value] of last) {
    expect((await only.get(path(name))).body.data.value).toBe(value)
  }

  // After the rotation of master keys, a process that has only an old master key does not start and prints the reason.
  const { database, config } = service
  const check = (keys: string) =>
    checkMasterKeys(database.url, { ...config, ...parseConfig({ MASTER_KEYS: keys }) })
  await expect(check(NEW)).rejects.toThrow(ConfigError)
  await expect(check(NEW)).rejects.toThrow('MASTER_KEYS: lacks "next"')
  await check(`${NEW},${NEXT}`)
})

testWhole(
  'a process with a wrong or missing key does not start, and a process that needs no key starts',
  async () => {
    const before = await stored()
    const current = before.find((row) => row.kind === 'webhook').key_id as string
    const missing = `MASTER_KEYS: lacks "${current}", which encrypts stored secrets`
    const wrong = `MASTER_KEYS: the key "${current}" differs from the key registered under that id`
    await Promise.all(
      [
        ['api/main.ts', [], pair('other'), missing],
        ['api/main.ts', [], pair(current), wrong],
        ['workers/main.ts', ['--pool', 'webhooks'], pair('other'), missing],
        ['workers/main.ts', ['--pool', 'webhooks'], pair(current), wrong],
      ].map(async ([file, args, keys, line]) => {
        await using failed = startProcess(
          file as string,
          { ...env(keys as string), PORT: '0', LOG_LEVEL: 'silent' },
          args as string[],
        )
        expect([file, await failed.exited, failed.stderr().trim()]).toEqual([file, 78, line])
      }),
    )
    expect(await stored()).toEqual(before)
    await using mail = startProcess(
      'workers/main.ts',
      { ...env(pair(current)), LOG_LEVEL: 'info' },
      ['--pool', 'mail'],
    )
    await printed(mail, /"msg":"ready"/)
  },
)

test('a master key rotation names a damaged data key, and still encrypts all other data keys again', async () => {
  const { pool } = service.database
  const { rows } = await pool.query(
    `update credential_versions v set wrapped_key = set_byte(wrapped_key, 20, 255 - get_byte(wrapped_key, 20))
     from credentials c where c.row = v.credential_row and c.name = 'many 7' returning c.id`,
  )
  const client = clientWith(NEXT)
  expect((await client.get(path('many 7'))).status).toBe(500)
  await using failed = rotate(`${LAST},${NEXT}`)
  expect(await failed.exited).toBe(1)
  expect(failed.stderr().trimEnd().split('\n').at(-1)).toBe(
    `damaged secrets; restore or delete them before you remove the old key: version 1 of credential ${rows[0].id}`,
  )
  expect(await underKey('next')).toBe(1)
  await client.delete(path('many 7'))
  await using rest = rotate(`${LAST},${NEXT}`)
  expect([await rest.exited, await underKey('next')]).toEqual([0, 0])
})

test('the error of a master key rotation names at most ten damaged data keys', () => {
  const labels = Array.from({ length: 12 }, (_, n) => `key ${n}`)
  const shown = labels.slice(0, 10).join(', ')
  const text = 'damaged secrets; restore or delete them before you remove the old key:'
  const messageOf = (count: number) => new BrokenRowsError(labels.slice(0, count)).message
  expect(messageOf(10)).toBe(`${text} ${shown}`)
  expect(messageOf(11)).toBe(`${text} ${shown} and 1 more`)
})

test('the rotation’s progress bar overwrites its line on a terminal, and without a terminal prints a line for every five percent', () => {
  const draw = (isTerminal: boolean) => {
    let text = ''
    const show = progressBar(1_000, isTerminal, (part) => {
      text += part
    })
    for (let done = 10; done <= 1_000; done += 10) show(done)
    return text
  }
  expect(draw(false).trimEnd().split('\n')).toHaveLength(21)
  expect(draw(false)).toEndWith(`[${'#'.repeat(30)}] 100 %  1000 of 1000 secrets\n`)
  expect(draw(true).split('\r')).toHaveLength(101)
  expect(draw(true).match(/\n/g)).toHaveLength(1)
  const more: string[] = []
  progressBar(10, true, (part) => more.push(part))(25)
  expect(more.join('')).toContain('100 %  25 of 25')
})
