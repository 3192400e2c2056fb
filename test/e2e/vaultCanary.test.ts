import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Secret } from 'otpauth'
import pg from 'pg'
import { generateKey } from '../../shared/apiKey.ts'
import { signWebhook } from '../../shared/events/webhookSignature.ts'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import { createProject } from '../../sql/account/projects/projects.ts'
import { createPool, type Pool, transaction } from '../../sql/db.ts'
import { startEmbeddedPostgres } from '../../sql/embedded/embeddedPostgres.ts'
import { createDelivery } from '../../sql/events/deliveries.ts'
import { migrate } from '../../sql/migrate.ts'
import { startReceiver } from '../support/events/receiver.ts'
import { printed, startProcess } from '../support/process/process.ts'
import { type Client, createClient } from '../support/service.ts'
import { vaultPath as path } from '../support/vault/vault.ts'
import { waitFor } from '../support/waitFor.ts'
import '../support/long.ts'

/** Returns random text, so that the text occurs only where the test puts it. */
const canary = () => `canary${randomBytes(12).toString('hex')}`
const pair = (id: string) => `${id}:${randomBytes(32).toString('base64')}`

/** Returns the bytes of a secret in every encoding in which the secret could leak. */
function forms(secret: string | Buffer): Buffer[] {
  const bytes = Buffer.from(secret)
  const texts = ['hex', 'base64', 'base64url'] as const
  const encoded = texts.flatMap((form) => {
    // The test cuts the secret to a multiple of three bytes, because only whole groups of three bytes have the same
    // base64 text when more bytes follow.
    const text = bytes.subarray(0, bytes.length - (bytes.length % 3)).toString(form)
    return [text, text.toUpperCase()]
  })
  return [bytes, ...encoded.map((text) => Buffer.from(text))]
}

const isIn = (haystack: Buffer, secret: string | Buffer) =>
  forms(secret).some((form) => haystack.includes(form))

/** Returns every row of every database table as text. */
async function dump(pool: Pool): Promise<Buffer> {
  const { rows } = await pool.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'm') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`,
  )
  expect(rows.length).toBeGreaterThan(20)
  const parts: string[] = []
  for (const { name } of rows) {
    const table = await pool.query<{ text: string }>(`select t::text as text from ${name} t`)
    parts.push(name, ...table.rows.map(({ text }) => text))
  }
  return Buffer.from(parts.join('\n'))
}

function filesBelow(folder: string): { path: string; bytes: Buffer }[] {
  return (readdirSync(folder, { recursive: true }) as string[])
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile())
    .map((file) => ({ path: file, bytes: readFileSync(file) }))
}

test('no vault secret appears in PostgreSQL, its write-ahead log, its most verbose log, the service’s logs, jobs or errors', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-canary-'))
  const databaseLog: string[] = []
  const database = await startEmbeddedPostgres({ dataDir, onLog: (line) => databaseLog.push(line) })
  const pool = createPool({ url: database.url, size: 4, name: 'canary' })
  const secrets: Record<string, string | Buffer> = {}
  /**
   * Holds a text that may appear in the database and in the logs. The search must find this text, because otherwise its
   * failure to find secrets would prove nothing.
   */
  const plain = canary()
  const answers: string[] = []
  const output: string[] = []
  try {
    await migrate(database.url)
    await logEverything(database.url)
    const rawKey = generateKey('project')
    const { project } = await createProject(pool, {
      name: 'Canary',
      purpose: 'SELLER',
      emailAddress: 'canary@mail.test',
      scopes: PROJECT_SCOPES,
      key: rawKey,
    })
    const [oldKey, newKey] = [pair('old'), pair('new')]
    for (const key of [oldKey, newKey]) {
      secrets[`master key ${key.slice(0, 3)}`] = Buffer.from(key.slice(4), 'base64')
    }
    const env = {
      DATABASE_URL: database.url,
      DATA_DIR: join(dataDir, 'service'),
      PORT: '0',
      LOG_LEVEL: 'debug',
      RATE_LIMIT_REQUESTS: '0',
      ALLOW_PRIVATE_NETWORKS: 'true',
    }
    {
      await using api = startProcess('api/main.ts', { ...env, MASTER_KEYS: oldKey })
      await using workers = startProcess('workers/main.ts', { ...env, MASTER_KEYS: oldKey }, [
        '--pool',
        'webhooks,vault',
      ])
      const [, port] = await printed(api, /"port":(\d+)/)
      await printed(workers, /"msg":"ready"/)
      const agent = createClient(`http://127.0.0.1:${port}`, rawKey)
      await useVault(agent, secrets, plain, answers)
      await failVault(agent, pool, secrets, answers)
      await useWebhooks(agent, pool, project.id, secrets)
      output.push(api.stdout(), api.stderr(), workers.stdout(), workers.stderr())
      expect(api.stdout()).toContain('request failed')
    }
    await using rotation = startProcess('sql/keyring/rotateMain.ts', {
      ...env,
      MASTER_KEYS: `${newKey},${oldKey}`,
    })
    expect(await rotation.exited).toBe(0)
    output.push(rotation.stdout(), rotation.stderr())

    const dumped = await dump(pool)
    await pool.end()
    await database.stop()
    const files = filesBelow(join(dataDir, 'postgres'))
    const wal = Buffer.concat(files.filter((f) => f.path.includes('pg_wal')).map((f) => f.bytes))
    const logged = Buffer.from(databaseLog.join('\n'))
    for (const place of [dumped, wal, logged]) expect(isIn(place, plain)).toBe(true)
    expect(Object.keys(secrets).length).toBeGreaterThan(15)
    for (const [label, secret] of Object.entries(secrets)) {
      const places = [
        ['dump', dumped],
        ['log of Postgres', logged],
        ['our logs', Buffer.from(output.join('\n'))],
        ['answers that are errors', Buffer.from(answers.join('\n'))],
        ...files.map((file) => [file.path, file.bytes] as const),
      ] as [string, Buffer][]
      const found = places.filter(([, bytes]) => isIn(bytes, secret)).map(([name]) => name)
      expect([label, found]).toEqual([label, []])
    }
  } finally {
    await pool.end().catch(() => {})
    await database.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
})

/** Makes PostgreSQL log every statement with all its parameters, even if the statement fails. */
async function logEverything(url: string): Promise<void> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  try {
    for (const setting of [
      "log_statement = 'all'",
      'log_min_duration_statement = 0',
      'log_parameter_max_length = -1',
      'log_parameter_max_length_on_error = -1',
      'log_error_verbosity = verbose',
    ]) {
      await admin.query(`alter system set ${setting}`)
    }
    await admin.query('select pg_reload_conf()')
  } finally {
    await admin.end()
  }
}

async function useVault(
  agent: Client,
  secrets: Record<string, string | Buffer>,
  plain: string,
  answers: string[],
): Promise<void> {
  const totpBytes = randomBytes(20)
  const totp = new Secret({ buffer: Uint8Array.from(totpBytes).buffer as ArrayBuffer }).base32
  Object.assign(secrets, { 'TOTP secret': totp, 'bytes of the TOTP secret': totpBytes })
  const password = (n: number) => {
    secrets[`password ${n}`] ??= canary()
    return secrets[`password ${n}`]
  }
  const backupCodes = [1, 2].map((n) => {
    secrets[`backup code ${n}`] = canary()
    return secrets[`backup code ${n}`]
  })
  secrets['name of a field'] = canary()
  const put = (n: number, more = {}) =>
    agent.put(path('n'), {
      type: 'LOGIN',
      data: { password: password(n), totp, backupCodes, [String(secrets['name of a field'])]: 1 },
      metadata: { note: plain },
      ...more,
    })
  for (const n of [1, 2, 3]) expect((await put(n)).status).toBe(200)
  expect((await agent.get(path('n'))).body.data.password).toBe(password(3))
  expect((await agent.get(path('n', '/totp'))).status).toBe(200)
  expect((await agent.post(path('n', '/totp/backup'))).body.code).toBe(backupCodes[0])
  expect((await agent.get(path('n', '/versions/1'))).body.data.password).toBe(password(1))
  expect((await agent.post(path('n', '/versions/2/restore'))).status).toBe(200)
  await agent.get(path('n', '/versions'))
  await agent.get('/v0/vault')
  await agent.get('/v0/logs')
  expect((await put(4, { expiresAt: '2020-01-01' })).status).toBe(200)
  for (const rest of ['', '/totp', '/versions/1']) {
    const { status, body } = await agent.get(path('n', rest))
    expect(status).toBe(410)
    answers.push(JSON.stringify(body))
  }
  expect((await put(5)).status).toBe(200)
  secrets['large value'] = canary()
  const large = { password: `${secrets['large value']}${'x'.repeat(60_000)}` }
  expect((await agent.put(path('large'), { type: 'LOGIN', data: large })).status).toBe(200)
  secrets['used value'] = canary()
  const data = { key: secrets['used value'], lines: `${secrets['used value']}\r\n` }
  const bounds = {
    ...{ allowedHosts: ['localhost:1'], placement: ['path:/', 'query:k', 'header:x-a'] },
  }
  expect((await agent.put(path('used'), { type: 'API_KEY', data, ...bounds })).status).toBe(200)
  const use = (field: string) =>
    agent.post(path('used', '/use'), {
      request: { url: `https://localhost:1/{{key}}?k={{key}}`, headers: { 'x-a': `{{${field}}}` } },
    })
  const refused = await use('lines')
  const failed = await use('key')
  expect([refused.status, failed.body.state]).toEqual([400, 'failed'])
  answers.push(JSON.stringify([refused.body, failed.body]))
  secrets['deleted value'] = canary()
  const gone = { key: secrets['deleted value'] }
  expect((await agent.put(path('gone'), { type: 'API_KEY', data: gone })).status).toBe(200)
  expect((await agent.delete(path('gone'))).status).toBe(204)
}

/** Sends every kind of bad request to the vault, and then makes the storage of the vault fail. */
async function failVault(
  agent: Client,
  pool: Pool,
  secrets: Record<string, string | Buffer>,
  answers: string[],
): Promise<void> {
  const bad = canary()
  secrets['value of refused requests'] = bad
  const refused: [number, unknown][] = [
    [400, { type: bad, data: { a: 1 } }],
    [400, { type: 'LOGIN', data: bad }],
    [400, { type: 'LOGIN', data: { password: [bad] } }],
    // The text contains 0 and 1, which are no Base32 digits. Without them, one random text in a thousand would be a
    // valid TOTP secret.
    [400, { type: 'TOTP', data: { secret: `01${bad}` } }],
    [400, { type: 'LOGIN', data: { totp: `otpauth://totp/x?secret=01${bad}&digits=9` } }],
    [400, { type: 'LOGIN', data: { password: bad.repeat(3_000) } }],
    [400, { type: 'LOGIN', data: { password: bad }, metadata: [bad] }],
    [400, { type: 'LOGIN', data: { password: bad }, expiresAt: bad }],
    [400, { type: 'LOGIN', data: { password: `${bad}\0` } }],
    [400, { type: 'LOGIN', data: { password: `${bad}\ud800` } }],
    [400, `{"type":"LOGIN","data":{"password":"${bad}"}`],
    [413, { type: 'LOGIN', data: { password: bad.repeat(100_000) } }],
  ]
  for (const [status, body] of refused) {
    const answer = await agent.put(path('bad'), body)
    expect(answer.status).toBe(status)
    answers.push(JSON.stringify(answer.body))
  }
  // The SQL statement fails at a time when the encrypted secret is among its parameters.
  const lost = canary()
  secrets['value that Postgres refused'] = lost
  await pool.query(
    `alter table credential_versions add constraint refusal check (metadata->>'note' <> 'refuse')`,
  )
  const failed = await agent.put(path('n'), {
    type: 'LOGIN',
    data: { password: lost },
    metadata: { note: 'refuse' },
  })
  expect(failed.status).toBe(500)
  await pool.query('alter table credential_versions drop constraint refusal')
  await pool.query('alter table credential_versions rename to hidden')
  for (const call of [
    agent.put(path('n'), { type: 'LOGIN', data: { password: lost } }),
    agent.get(path('n')),
    agent.get(path('n', '/totp')),
    agent.post(path('n', '/totp/backup')),
    agent.post(path('n', '/versions/1/restore')),
  ]) {
    const { status, body } = await call
    expect(status).toBe(500)
    answers.push(JSON.stringify(body))
  }
  await pool.query('alter table hidden rename to credential_versions')
  // The test changes the stored ciphertext of a secret, so that the secret cannot be decrypted any more.
  await pool.query(
    `update credential_versions v set ciphertext = set_byte(ciphertext, 20, 255 - get_byte(ciphertext, 20))
     from credentials c where c.row = v.credential_row and c.name = 'large'`,
  )
  for (const rest of ['', '/versions/1']) {
    const { status, body } = await agent.get(path('large', rest))
    expect(status).toBe(500)
    answers.push(JSON.stringify(body))
  }
  answers.push(JSON.stringify(failed.body))
}

async function useWebhooks(
  agent: Client,
  pool: Pool,
  projectId: string,
  secrets: Record<string, string | Buffer>,
): Promise<void> {
  await using receiver = await startReceiver()
  const given = canary()
  const put = (name: string, more = {}) =>
    agent.put('/v0/sellers/endpoints', {
      urlPattern: `http://127.0.0.1:1/${name}`,
      priceUsdc: '0.01',
      network: 'base-sepolia',
      webhookUrl: receiver.url,
      ...more,
    })
  const own = (await put('own', { webhookSecret: given })).body
  const made = (await put('made')).body
  const rotated = await agent.post(`/v0/sellers/endpoints/${made.endpointId}/rotate-secret`)
  Object.assign(secrets, {
    'webhook secret, given': given,
    'webhook secret, generated': made.webhookSecret,
    'webhook secret, rotated': rotated.body.webhookSecret,
  })
  for (const [endpointId, secret] of [
    [own.endpointId, given],
    [made.endpointId, rotated.body.webhookSecret],
  ]) {
    const body = Buffer.from(JSON.stringify({ endpointId }))
    await transaction(pool, (db) =>
      createDelivery(db, {
        projectId,
        to: { endpointId },
        subjectId: null,
        event: 'payment.received',
        url: receiver.url,
        body,
      }),
    )
    const request = await waitFor('the delivery', () =>
      receiver.requests.find((received) => received.body.equals(body)),
    )
    expect(request.headers['x-service-signature']).toBe(signWebhook({ secret, body }))
  }
}
