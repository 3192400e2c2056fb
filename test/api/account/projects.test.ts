import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startApi } from '../../../api/http/server.ts'
import { DEFAULT_SCOPES, PROJECT_SCOPES } from '../../../shared/scopes.ts'
import { silentLog } from '../../support/logs.ts'
import {
  createClient,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

const create = async (body: unknown = {}) =>
  (await service.platform.post('/v0/platform/projects', body)).body

test('the creation of a project returns its inbox and its API key, and no later response shows the API key', async () => {
  const { status, body } = await service.platform.post('/v0/platform/projects', {
    name: 'Shop',
    emailName: 'Shop.One',
    purpose: 'BUYER',
    scopes: ['mail:read', 'mail:read'],
    payTo: `0x${'ab'.repeat(20)}`,
    paymentsEnabled: true,
  })
  expect(status).toBe(201)
  expect(body).toEqual({
    projectId: expect.stringMatching(/^prj_[0-9a-f]{24}$/),
    identityId: body.projectId,
    name: 'Shop',
    displayName: null,
    type: 'INBOX',
    purpose: 'BUYER',
    emailAddress: 'shop.one@mail.test',
    email: 'shop.one@mail.test',
    scopes: ['mail:read'],
    apiKeyPrefix: body.rawKey.slice(0, 17),
    payTo: `0x${'ab'.repeat(20)}`,
    ownAddresses: [],
    paymentsEnabled: true,
    sendPolicy: 'free',
    approverEmail: null,
    approvalHours: 72,
    usage: {
      storageBytes: 0,
      dailySettlements: 0,
      dailyGas: 0,
      dailyPurseGas: 0,
      dailyTextBytes: 0,
      dailyTextSeconds: 0,
    },
    limits: {
      storageBytes: 10 * 1024 ** 3,
      dailySettlements: 100_000,
      dailyGas: 10_000_000_000,
      dailyTextBytes: 1024 ** 3,
      dailyTextSeconds: 3_600,
    },
    retention: {
      mail: null,
      rawMail: null,
      deliveries: null,
      logs: 90,
      idempotencyKeys: 1,
      paymentDetails: null,
    },
    usageCount: 0,
    lastUsedAt: null,
    createdAt: expect.stringMatching(/\.\d{3}Z$/),
    rawKey: expect.stringMatching(/^loid-[0-9a-f]{64}$/),
  })
  expect((await createClient(service.url, body.rawKey).get('/v0/whoami')).body.email).toBe(
    'shop.one@mail.test',
  )
  const { rawKey, ...made } = body
  // An API key's last use is recorded in the database some seconds after the request, so the test waits for the record.
  const got = await waitFor('the usage', async () => {
    const read = await service.platform.get(`/v0/platform/projects/${body.projectId}`)
    return read.body.usageCount === 1 ? read : null
  })
  const shown = { ...made, usageCount: 1, lastUsedAt: expect.stringMatching(/\.\d{3}Z$/) }
  expect(got.body).toEqual(shown)
  const alias = await service.platform.get(`/v0/platform/identities/${body.projectId}`)
  expect(alias.body).toEqual(shown)
})

test('a project created without options has every scope and an email address of its own', async () => {
  const [one, two] = [await create(), await create()]
  expect(one.scopes).toEqual([...DEFAULT_SCOPES])
  expect(one.purpose).toBe('SELLER')
  expect(one.emailAddress).toMatch(/^agent-[0-9a-f]{10}@mail\.test$/)
  expect(two.emailAddress).not.toBe(one.emailAddress)
})

test('a request with an invalid project field is refused, and the error names the field', async () => {
  const cases: [unknown, string][] = [
    [{ emailName: 'a b' }, 'emailName must be 1 to 64 letters'],
    [{ emailName: '.a' }, 'emailName must be 1 to 64 letters'],
    [{ emailName: 'a..b' }, 'emailName must not hold two dots'],
    [{ emailName: 'Postmaster' }, 'emailName must be another: postmaster@mail.test is kept'],
    [{ emailName: 'dmarc' }, 'emailName must be another'],
    [{ emailName: 'tlsrpt' }, 'emailName must be another'],
    [{ emailName: 'abuse' }, 'emailName must be another'],
    [{ emailName: 'hostmaster' }, 'emailName must be another'],
    [{ emailName: 'No-Reply' }, 'emailName must be another: no-reply@mail.test is kept'],
    [{ emailName: 'x'.repeat(65) }, 'emailName must be'],
    [{ name: '' }, 'name must be one line of 1 to 200 characters'],
    [{ name: 'a\nb' }, 'name must be one line'],
    [{ scopes: ['mail:fly'] }, 'scopes[0] must be one of "mail:read"'],
    [{ scopes: 'mail:read' }, 'scopes must be an array'],
    [
      { scopes: [...PROJECT_SCOPES, 'payments:read'] },
      `scopes[${PROJECT_SCOPES.length}] must be one of "mail:read"`,
    ],
    [{ scopes: Array(51).fill('mail:read') }, 'scopes must be an array of at most 50 items'],
    [{ purpose: 'OTHER' }, 'purpose must be one of "SELLER", "BUYER"'],
    [{ payTo: '0x12' }, 'payTo must be an EVM address'],
    [{ paymentsEnabled: 'yes' }, 'paymentsEnabled must be true or false'],
  ]
  for (const [body, message] of cases) {
    const answer = await service.platform.post('/v0/platform/projects', body)
    expect([answer.status, answer.body.error]).toEqual([400, 'bad_request'])
    expect(answer.body.message).toStartWith(message)
  }
})

test('the service assigns an email address to one project only, even after the project is deleted', async () => {
  const first = await create({ emailName: 'unique' })
  const again = () => service.platform.post('/v0/platform/projects', { emailName: 'UNIQUE' })
  expect((await again()).status).toBe(409)
  await service.platform.delete(`/v0/platform/projects/${first.projectId}`)
  expect((await again()).body).toMatchObject({ error: 'conflict', status: 409 })
})

test('if twenty concurrent requests create a project with the same email address, only one of them succeeds', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      service.platform.post('/v0/platform/projects', { emailName: 'race' }),
    ),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array(19).fill(409)])
})

test('an operator adds and removes scopes of a project, and the change takes effect at once', async () => {
  const project = await create({ scopes: ['mail:read'] })
  const client = createClient(service.url, project.rawKey)
  const path = `/v0/platform/projects/${project.projectId}`
  const changed = await service.platform.patch(path, {
    name: 'Renamed',
    addScopes: ['mail:manage', 'vault:read'],
    removeScopes: ['mail:read'],
    payTo: null,
  })
  expect(changed.body).toMatchObject({
    name: 'Renamed',
    scopes: ['mail:manage', 'vault:read'],
    payTo: null,
  })
  expect((await client.get('/v0/messages')).status).toBe(403)
  expect((await service.platform.patch(path, { addScopes: ['nope'] })).status).toBe(400)
})

test('the audit log of a project records who replaced its API key, and the prefix of the new key', async () => {
  const { projectId } = await create()
  const { body } = await service.platform.post(`/v0/platform/projects/${projectId}/rotate-key`)
  const agent = createClient(service.url, body.rawKey)
  const { logs } = (await agent.get('/v0/logs?action=project.rotate_key')).body
  expect(logs).toMatchObject([
    { actor: service.platform.key.slice(0, 17), description: body.apiKeyPrefix, outcome: 'ok' },
  ])
  expect(JSON.stringify(logs)).not.toContain(body.rawKey)
})

test('if an API key is rotated, every API process refuses the old key at once, and concurrent rotations leave only one valid key', async () => {
  const other = startApi(service.config, service.database.url, silentLog)
  try {
    const project = await create()
    const urls = [service.url, `http://127.0.0.1:${other.port}`]
    for (const url of urls)
      expect((await createClient(url, project.rawKey).get('/v0/whoami')).status).toBe(200)
    const path = `/v0/platform/projects/${project.projectId}/rotate-key`
    const { status, body } = await service.platform.post(path)
    expect(status).toBe(200)
    expect(Object.keys(body).toSorted()).toEqual(['apiKeyPrefix', 'message', 'rawKey'])
    for (const url of urls) {
      expect((await createClient(url, project.rawKey).get('/v0/whoami')).body.message).toBe(
        'Invalid API key',
      )
      expect((await createClient(url, body.rawKey).get('/v0/whoami')).status).toBe(200)
    }
    const rotations = await Promise.all(
      Array.from({ length: 8 }, () => service.platform.post(path)),
    )
    expect(rotations.every((rotation) => rotation.status === 200)).toBe(true)
    const alive = await Promise.all(
      rotations.map(
        async (rotation) =>
          (await createClient(service.url, rotation.body.rawKey).get('/v0/whoami')).status,
      ),
    )
    expect(alive.toSorted()).toEqual([200, ...Array(7).fill(401)])
  } finally {
    await other.stop()
  }
})

test('a platform key sets the retention periods of a project within bounds, and the audit log records the change', async () => {
  const project = await create()
  const path = `/v0/platform/projects/${project.projectId}`
  const set = (retention: unknown) => service.platform.patch(path, { retention })
  const { retention } = (await set({ mail: 30, rawMail: 7, logs: 365 })).body
  expect(retention).toEqual({ ...project.retention, mail: 30, rawMail: 7, logs: 365 })
  expect((await set({ mail: null, idempotencyKeys: 30 })).body.retention).toEqual({
    ...project.retention,
    rawMail: 7,
    logs: 365,
    idempotencyKeys: 30,
  })
  expect((await service.platform.get(path)).body.retention.rawMail).toBe(7)
  const refused: [object, string][] = [
    [{ mail: 0 }, "retention.mail must be a number of days, 1 to 36500, or null for the service's"],
    [{ mail: 1.5 }, 'retention.mail must be a number of days'],
    [{ mail: '30' }, 'retention.mail must be a number of days'],
    [{ rawMail: 36_501 }, 'retention.rawMail must be a number of days'],
    [{ deliveries: -1 }, 'retention.deliveries must be a number of days'],
    [{ logs: 29 }, 'retention.logs must be a number of days, 30 to 36500'],
    [{ idempotencyKeys: 31 }, 'retention.idempotencyKeys must be a number of days, 1 to 30'],
    [{ paymentDetails: 6 }, 'retention.paymentDetails must be a number of days, 7 to 36500'],
  ]
  refused.push([
    { mial: 30 },
    'retention must not hold "mial": the nearest field is mail, of mail, rawMail,',
  ])
  for (const [given, message] of refused) {
    const { status, body } = await set(given)
    expect([status, body.message]).toEqual([400, expect.stringContaining(message)])
  }
  const agent = createClient(service.url, project.rawKey)
  expect((await agent.patch(path, { retention: { logs: 30 } })).status).toBe(403)
  const { logs } = (await agent.get('/v0/logs?action=project.retention')).body
  expect(logs.map(({ description }: { description: string }) => description)).toHaveLength(2)
  expect(logs[1].actor).toBe(service.platform.key.slice(0, 17))
})

test('the audit log of a project records a change with its actor, whereas a change with a misspelt field is refused and not recorded', async () => {
  const project = await create()
  const path = `/v0/platform/projects/${project.projectId}`
  const change = (body: object) => service.platform.patch(path, body)
  await change({ sendPolicy: 'approve', approverEmail: 'ada@example.com', approvalHours: 5 })
  await change({ name: 'Ada', limits: { dailyGas: 7 }, removeScopes: ['vault:use', 'mail:send'] })
  for (const [body, message] of [
    [
      { sendPolcy: 'free' },
      'The body must not hold "sendPolcy": the nearest field is sendPolicy, of name,',
    ],
    [
      { limits: { dailygas: 1 } },
      'limits must not hold "dailygas": the nearest field is dailyGas, of storageBytes,',
    ],
  ] as const) {
    const refused = await change(body)
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining(message)])
  }
  const agent = createClient(service.url, project.rawKey)
  const { logs } = (await agent.get('/v0/logs?action=project.update')).body
  expect(logs.map(({ actor }: { actor: string }) => actor)).toEqual(
    Array(2).fill(service.platform.key.slice(0, 17)),
  )
  expect(logs.map(({ description }: { description: string }) => description).toReversed()).toEqual([
    'sendPolicy approve, approverEmail ada@example.com, approvalHours 5',
    'name, removeScopes vault:use mail:send, dailyGas 7',
  ])
})

test('a deleted project loses its API key, its mail, its vault and its audit log, and is not listed', async () => {
  const project = await create({ emailName: 'doomed' })
  const client = createClient(service.url, project.rawKey)
  for (const n of [1, 2]) {
    await service.deliver({
      from: 'a@example.com',
      to: 'doomed@mail.test',
      subject: `${n}`,
      text: `${n}`,
    })
  }
  await client.post('/v0/messages/send', { to: ['a@example.com'], subject: 's', text: 't' })
  for (const n of [1, 2]) {
    await client.put('/v0/vault/secret', { type: 'CUSTOM', data: { n } })
  }
  await waitForMessages(client, 3)
  const path = `/v0/platform/projects/${project.projectId}`
  const deleted = await service.platform.delete(path)
  expect([deleted.status, deleted.body]).toEqual([204, null])
  expect((await client.get('/v0/messages')).status).toBe(401)
  for (const answer of [
    await service.platform.get(path),
    await service.platform.patch(path, { name: 'x' }),
    await service.platform.delete(path),
    await service.platform.post(`${path}/rotate-key`),
  ]) {
    expect(answer.body).toEqual({ error: 'not_found', message: 'Project not found', status: 404 })
  }
  await waitFor('all of it to be removed', async () => {
    const { rows } = await service.database.pool.query(
      `select (select count(*) from messages where project_id = $1) + (select count(*) from threads where project_id = $1)
            + (select count(*) from inbound_mails where project_id = $1) + (select count(*) from credential_versions)
            + (select count(*) from audit_log where project_id = $1) as left_over`,
      [project.projectId],
    )
    return rows[0].left_over === '0'
  })
  const raw = await service.database.pool.query(
    'select count(*)::int as n from raw_mails r where not exists (select from messages m where m.raw_id = r.id)',
  )
  expect(raw.rows[0].n).toBe(0)
})

test('the result pages of /v0/platform/projects together list each project once, and so do those of /v0/platform/identities', async () => {
  const created = await Promise.all(Array.from({ length: 25 }, () => create()))
  const wanted = new Set(created.map((project) => project.projectId))
  for (const name of ['projects', 'identities']) {
    const seen: string[] = []
    let token: string | undefined
    do {
      const page = (
        await service.platform.get(
          `/v0/platform/${name}?limit=7${token === undefined ? '' : `&pageToken=${token}`}`,
        )
      ).body
      expect(page.count).toBe(page[name].length)
      seen.push(...page[name].map((project: { projectId: string }) => project.projectId))
      token = page.nextPageToken
    } while (token !== undefined)
    expect(new Set(seen).size).toBe(seen.length)
    expect([...wanted].every((id) => seen.includes(id))).toBe(true)
  }
})
