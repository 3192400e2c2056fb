import { afterAll, beforeAll, expect, test } from 'bun:test'
import { inspect } from 'node:util'
import {
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ConnectionError,
  ExpiredError,
  ForbiddenError,
  NotFoundError,
  Purser,
  PurserError,
  PurserPlatform,
} from '../../../api/client/main.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
let agent: Agent
let purser: Purser
let platform: PurserPlatform
beforeAll(async () => {
  service = await startTestService()
  agent = await service.newAgent()
  purser = new Purser({ apiKey: agent.key, baseUrl: service.url })
  platform = new PurserPlatform({ apiKey: service.platform.key, baseUrl: `${service.url}/` })
})
afterAll(() => service[Symbol.asyncDispose]())

/** Returns the error with which a promise is rejected. */
const rejection = (promise: Promise<unknown>): Promise<any> =>
  promise.then(
    (value) => {
      throw new Error(`was not rejected but gave ${JSON.stringify(value)}`)
    },
    (error) => error,
  )

/** Returns the options of a client that loses the first response to a POST, after the service has carried it out. */
const losing = () => {
  let isLost = false
  return {
    baseUrl: service.url,
    fetch: async (request: Request) => {
      const response = await fetch(request)
      if (request.method !== 'POST' || isLost) return response
      isLost = true
      throw new TypeError('the response is lost')
    },
  }
}

test('the client repeats a POST with an idempotency key only if the service keeps the key of this operation', async () => {
  const idempotencyKey = crypto.randomUUID()
  const data = { password: 'x', backupCodes: ['c-1', 'c-2', 'c-3'] }
  await purser.vault.put('lost', { type: 'LOGIN', data })
  const lost = () => new Purser({ apiKey: agent.key, ...losing() })
  expect(await rejection(lost().vault.takeBackupCode('lost', { idempotencyKey }))).toBeInstanceOf(
    ConnectionError,
  )
  expect(await purser.vault.takeBackupCode('lost')).toEqual({ code: 'c-2', remaining: 1 })
  const owner = new PurserPlatform({ apiKey: service.platform.key, ...losing() })
  const name = `Lost ${idempotencyKey}`
  expect(await rejection(owner.projects.create({ name }, { idempotencyKey }))).toBeInstanceOf(
    ConnectionError,
  )
  expect((await platform.projects.list({ q: name })).count).toBe(1)
  const sent = { to: ['ann@example.com'], subject: idempotencyKey, text: 'x' }
  await lost().messages.send(sent, { idempotencyKey })
  expect((await purser.messages.list({ subject: idempotencyKey })).count).toBe(1)
  const { draftId } = await purser.messages.drafts.create({ ...sent, subject: `d ${name}` })
  await lost().messages.drafts.send(draftId)
  expect((await purser.messages.list({ subject: `d ${name}` })).count).toBe(1)
})

test('the client receives, lists, reads, labels and answers mail, and reads its thread', async () => {
  expect(await purser.whoami()).toMatchObject({ email: agent.address, type: 'INBOX' })
  await service.deliver({
    from: 'ada@example.com',
    to: agent.address,
    subject: 'Offer',
    text: 'Shall I order?',
    messageId: '<a/b+c%d@example.com>',
  })
  const [item] = await waitFor('the mail', async () => {
    const { messages } = await purser.messages.list({ labels: ['received', 'unread'], limit: 5 })
    return messages.length > 0 && messages
  })
  expect(item?.messageId).toBe('<a/b+c%d@example.com>')
  const message = await purser.messages.get(item!.messageId)
  expect([message.subject, message.inboxId]).toEqual(['Offer', agent.address])
  const { labels } = await purser.messages.updateLabels(message.messageId, {
    addLabels: ['read'],
    removeLabels: ['unread'],
  })
  expect(labels).toEqual(['received', 'read'])
  const reply = await purser.messages.reply(message.messageId, { text: 'Yes.' })
  expect(reply.subject).toBe('Re: Offer')
  const thread = await purser.threads.get(message.threadId, { limit: 1 })
  expect([thread.totalMessages, thread.messages[0]?.messageId]).toEqual([2, reply.messageId])
  expect((await purser.threads.list()).threads[0]?.threadId).toBe(message.threadId)
})

test('an iterator of the client loads only the list pages that the caller reads', async () => {
  const sender = await service.newAgent()
  const asked: string[] = []
  const own = new Purser({
    apiKey: sender.key,
    baseUrl: service.url,
    fetch: (request) => {
      asked.push(request.url)
      return fetch(request)
    },
  })
  for (let n = 0; n < 5; n++) {
    await own.messages.send({ to: ['a@example.com'], subject: String(n), text: 't' })
  }
  asked.length = 0
  const subjects: string[] = []
  for await (const { subject } of own.messages.all({ limit: 2 })) subjects.push(subject)
  expect(subjects).toEqual(['4', '3', '2', '1', '0'])
  expect(asked).toHaveLength(3)
  for await (const { subject } of own.messages.all({ limit: 2 })) {
    expect(subject).toBe('4')
    break
  }
  expect(asked).toHaveLength(4)
  const threads = []
  for await (const thread of own.threads.all({ limit: 3 })) threads.push(thread)
  expect(threads).toHaveLength(5)
})

test('the client manages endpoints and reads payments and deliveries for a seller', async () => {
  const url = 'https://api.example.com/report'
  const put = await purser.sellers.put({
    urlPattern: url,
    priceUsdc: '0.01',
    webhookUrl: 'https://api.example.com/hook',
  })
  expect(put.webhookSecret).toStartWith('whsec_')
  const { endpointId } = put
  expect(await purser.sellers.get(endpointId)).toMatchObject({ urlPattern: url, callCount: 0 })
  expect(await purser.sellers.update(endpointId, { priceUsdc: '0.02' })).toMatchObject({
    priceUsdc: '0.02',
  })
  expect((await purser.sellers.rotateSecret(endpointId)).webhookSecret).not.toBe(put.webhookSecret)
  expect((await purser.sellers.list()).count).toBe(1)
  expect(await purser.sellers.delete(endpointId)).toBeUndefined()
  expect(await Array.fromAsync(purser.sellers.all())).toEqual([])
  expect(await purser.payments.list({ limit: 10 })).toEqual({ payments: [], count: 0 })
  expect(await Array.fromAsync(purser.payments.all())).toEqual([])
  expect(await Array.fromAsync(purser.webhooks.all({ status: 'exhausted' }))).toEqual([])
  const missing = [
    purser.payments.get('pay_0'),
    purser.webhooks.get('whd_0'),
    purser.webhooks.replay('whd_0'),
    purser.sellers.get(endpointId),
  ]
  for (const error of await Promise.all(missing.map(rejection))) {
    expect(error).toBeInstanceOf(NotFoundError)
  }
})

test('the client stores, lists, reads and deletes credentials, and reads their one-time codes, their versions and the audit log', async () => {
  const owner = await service.newAgent()
  const { vault, logs } = new Purser({ apiKey: owner.key, baseUrl: service.url })
  const name = 'git/hub ü?#%2F'
  const data = { password: 'one', totp: 'JBSWY3DPEHPK3PXP', backupCodes: ['b-1', 'b-2'] }
  await vault.put(name, { type: 'LOGIN', data, metadata: { username: 'ada' } })
  const { version } = await vault.put(name, { type: 'LOGIN', data: { ...data, password: 'two' } })
  expect(version).toBe(2)
  const credential = await vault.get(name)
  expect([credential.name, credential.data.password, credential.hasTOTP]).toEqual([
    name,
    'two',
    true,
  ])
  expect((await vault.totp(name)).code).toMatch(/^\d{6}$/)
  expect(await vault.takeBackupCode(name)).toEqual({ code: 'b-1', remaining: 1 })
  expect((await vault.getVersion(name, 1)).data.password).toBe('one')
  await vault.restoreVersion(name, 1)
  expect((await vault.listVersions(name)).versions.length).toBeGreaterThanOrEqual(3)
  expect((await vault.get(name)).data.password).toBe('one')
  await vault.put('gone', { type: 'API_KEY', data: { key: 'k' }, expiresAt: '2020-01-01' })
  expect(await rejection(vault.get('gone'))).toBeInstanceOf(ExpiredError)
  const names = []
  for await (const item of vault.all({ limit: 1 })) names.push(item.name)
  expect(names).toEqual(['gone', name])
  expect((await vault.list({ expiringWithin: '1d' })).count).toBe(1)
  expect(await vault.delete(name)).toBeUndefined()
  expect(await rejection(vault.get(name))).toBeInstanceOf(NotFoundError)
  const actions = []
  for await (const entry of logs.all({ limit: 5, subject: name })) actions.push(entry.action)
  expect(actions).toContain('vault.delete')
  expect((await logs.list({ outcome: 'expired' })).logs[0]).toMatchObject({ subject: 'gone' })
})

test('the client creates, changes and deletes projects for a platform, and rotates their keys', async () => {
  const created = await platform.projects.create({ name: 'Bot', scopes: ['mail:read'] })
  const { projectId } = created
  const bot = new Purser({ apiKey: created.rawKey, baseUrl: service.url })
  expect((await bot.whoami()).projectId).toBe(projectId)
  const changed = await platform.projects.update(projectId, { addScopes: ['mail:send'] })
  expect(changed.scopes.toSorted()).toEqual(['mail:read', 'mail:send'])
  expect((await platform.projects.get(projectId)).name).toBe('Bot')
  const ids = []
  for await (const project of platform.projects.all({ limit: 1 })) ids.push(project.projectId)
  expect(ids).toContain(projectId)
  const { rawKey } = await platform.projects.rotateKey(projectId)
  expect(await rejection(bot.whoami())).toBeInstanceOf(AuthenticationError)
  await new Purser({ apiKey: rawKey, baseUrl: service.url }).whoami()
  expect(await platform.projects.delete(projectId)).toBeUndefined()
  expect(await rejection(platform.projects.get(projectId))).toBeInstanceOf(NotFoundError)
})

test('the client throws typed errors with the error message of the service', async () => {
  const error = await rejection(purser.messages.get('<no@where>'))
  expect(error).toBeInstanceOf(NotFoundError)
  expect(error).toBeInstanceOf(PurserError)
  expect(error).toMatchObject({
    name: 'NotFoundError',
    message: 'Message not found',
    status: 404,
    code: 'not_found',
    requestId: expect.stringMatching(/./),
    body: { error: 'not_found', message: 'Message not found', status: 404 },
  })
  const bad = await rejection(purser.messages.send({ to: ['nobody'], subject: 's', text: 't' }))
  expect(bad).toBeInstanceOf(BadRequestError)
  expect(bad.message).toStartWith('to[0] must be one email address')
  const reader = await service.newAgent({ scopes: ['mail:read'] })
  const forbidden = new Purser({ apiKey: reader.key, baseUrl: service.url })
  expect(
    await rejection(forbidden.messages.send({ to: ['a@b.test'], subject: 's', text: 't' })),
  ).toBeInstanceOf(ForbiddenError)
  expect(
    await rejection(purser.payments.challenge({ amount: '1', resource: 'https://x.test/' })),
  ).toBeInstanceOf(ForbiddenError)
  const { emailAddress } = await platform.projects.create({})
  const emailName = emailAddress.split('@')[0]!
  expect(await rejection(platform.projects.create({ emailName }))).toBeInstanceOf(ConflictError)
  const nowhere = new Purser({ apiKey: agent.key, baseUrl: 'http://127.0.0.1:1', retries: 0 })
  const lost = await rejection(nowhere.whoami())
  expect(lost).toBeInstanceOf(ConnectionError)
  expect(lost.message).toBe('GET /v0/whoami could not reach http://127.0.0.1:1')
})

test('the constructor of the client throws an error at once if an option is invalid', async () => {
  expect(() => new Purser({ apiKey: service.platform.key })).toThrow(
    'apiKey must be a key that starts with loid-',
  )
  expect(() => new PurserPlatform({ apiKey: agent.key })).toThrow(
    'apiKey must be a key that starts with lopk-',
  )
  expect(() => new Purser({ apiKey: undefined as never })).toThrow(TypeError)
  expect(() => new Purser({ apiKey: agent.key, baseUrl: 'purser.example.com' })).toThrow(
    'baseUrl must be an http(s) URL',
  )
  await expect(purser.messages.get('')).rejects.toThrow('messageId must not be empty')
  for (const name of ['.', '..']) {
    await expect(purser.messages.get(name)).rejects.toThrow(`messageId must not be "${name}"`)
    await purser.vault.put(name, { type: 'API_KEY', data: { key: name } })
    expect((await purser.vault.getVersion(name, 1)).data).toEqual({ key: name })
    await purser.vault.delete(name)
    await expect(purser.vault.get(name)).rejects.toThrow('Credential not found')
  }
})

test('neither the printed client object nor any error of the client contains the API key', async () => {
  const error = await rejection(purser.messages.get('<no@where>'))
  const secret = agent.key.slice(5)
  for (const thing of [purser, error, purser.messages]) {
    expect(inspect(thing, { depth: 9, showHidden: true })).not.toContain(secret)
    expect(JSON.stringify(thing)).not.toContain(secret)
  }
})
