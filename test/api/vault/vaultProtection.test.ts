/** Tests who may read the secret of a credential, and to which hosts the secret may be sent. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type ConsoleClient, signIn } from '../../support/console/consoleSession.ts'
import { type Answer, startTestService, type TestService } from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'

let service: TestService
let owner: ConsoleClient
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  owner = await signIn(service)
})
afterAll(() => service[Symbol.asyncDispose]())

const DATA = { password: 'correct horse', totp: 'JBSWY3DPEHPK3PXP', backupCodes: ['a1b2', 'c3'] }
const login = (more: object = {}) => ({ type: 'LOGIN', data: DATA, ...more })
const outcome = ({ status, body }: Pick<Answer, 'status' | 'body'>) => [status, body.message]
const WITHHELD = [
  403,
  'Credential "bank" is revealed to its owner only; use it with POST /v0/vault/{name}/use or /sign',
]
const OWNERS_ALONE = [
  403,
  'Only the owner, in the console, may reveal this credential to agents, or widen its allowedHosts, allowedMethods, ' +
    'allowedPaths or placement',
]

test('the console can reveal a withheld credential (hidden from the agent), but no operation reveals it to an API key', async () => {
  const agent = await service.newAgent()
  await agent.put(path('bank'), login())
  expect((await agent.get(path('bank'))).status).toBe(200)
  const { body } = await agent.patch(path('bank'), { reveal: 'owner' })
  expect(body).toMatchObject({ name: 'bank', version: 1, reveal: 'owner' })
  await agent.put(path('bank'), login({ data: { ...DATA, password: 'second' } }))
  for (const call of [
    agent.get(path('bank')),
    agent.get(path('bank', '/totp')),
    agent.get(path('bank', '/versions/1')),
    agent.get(path('bank', '/versions/2')),
    agent.post(path('bank', '/totp/backup')),
  ]) {
    expect(outcome(await call)).toEqual(WITHHELD)
  }
  expect(outcome(await agent.put(path('bank'), login({ reveal: 'agent' })))).toEqual(OWNERS_ALONE)
  expect(outcome(await agent.patch(path('bank'), { reveal: 'agent' }))).toEqual(OWNERS_ALONE)
  await agent.post(path('bank', '/versions/1/restore'))
  expect(outcome(await agent.get(path('bank')))).toEqual(WITHHELD)

  const base = `/projects/${agent.project.id}/v0/vault/-?name=bank`
  expect((await owner.get(base)).body.data.password).toBe('correct horse')
  const { body: logs } = await agent.get('/v0/logs?category=vault&outcome=refused')
  expect(logs.logs.map(({ action }: any) => action).toSorted()).toEqual([
    ...['vault.backup_code', 'vault.get', 'vault.get', 'vault.protect', 'vault.put', 'vault.totp'],
    ...['vault.version_get', 'vault.version_get'],
  ])
  expect((await owner.patch(base, { reveal: 'agent' })).status).toBe(200)
  expect((await agent.get(path('bank'))).body.data.password).toBe('correct horse')
})

test('a credential’s allowed hosts come from metadata.uri, or from allowedHosts in canonical form', async () => {
  const agent = await service.newAgent()
  const put = async (more: object) =>
    (await agent.put(path('n'), login(more))).body.allowedHosts as string[]
  expect(await put({})).toEqual([])
  expect(await put({ metadata: { uri: 'http://plain.example' } })).toEqual([])
  expect(await put({ metadata: { uri: 'https://GitHub.com/login' } })).toEqual(['github.com'])
  expect(await put({ metadata: { uri: 'https://a.test:8443' } })).toEqual(['a.test:8443'])
  const hosts = ['API.Example.com:443', '*.Example.com', 'api.example.com', 'bücher.example']
  expect(await put({ allowedHosts: hosts, metadata: { uri: 'https://other.test' } })).toEqual([
    'api.example.com',
    '*.example.com',
    'xn--bcher-kva.example',
  ])
  expect((await agent.get('/v0/vault')).body.credentials[0].allowedHosts).toHaveLength(3)
  for (const bad of [
    '',
    '*',
    '*.com',
    'https://a.test',
    'a.test/x',
    'u@a.test',
    'a b',
    '*.1.2.3.4',
  ]) {
    const answer = await agent.put(path('n'), login({ allowedHosts: [bad] }))
    expect(outcome(answer)).toEqual([
      400,
      'allowedHosts[0] must be a host such as api.example.com, *.example.com or api.example.com:8443, without scheme and path',
    ])
  }
  const many = Array.from({ length: 21 }, (_, n) => `h${n}.test`)
  expect((await agent.put(path('n'), login({ allowedHosts: many }))).status).toBe(400)
})

test('an API key can only narrow the allowed hosts, the console can widen them, and a restore keeps the hosts that the owner set', async () => {
  const agent = await service.newAgent()
  const hostsOf = async () => (await agent.get('/v0/vault')).body.credentials[0].allowedHosts
  await agent.put(path('n'), login({ allowedHosts: ['*.example.com', 'a.test'] }))
  for (const wider of [['b.test'], ['example.com'], ['*.test.example'], ['a.test:8443']]) {
    expect(outcome(await agent.patch(path('n'), { allowedHosts: wider }))).toEqual(OWNERS_ALONE)
  }
  const narrower = ['api.example.com', '*.eu.example.com']
  expect((await agent.patch(path('n'), { allowedHosts: narrower })).body.allowedHosts).toEqual(
    narrower,
  )
  const base = `/projects/${agent.project.id}/v0/vault/-?name=n`
  expect((await owner.patch(base, { allowedHosts: ['b.test'] })).status).toBe(200)
  expect(await hostsOf()).toEqual(['b.test'])
  const attack = await agent.put(path('n'), login({ allowedHosts: ['attacker.test'] }))
  expect(outcome(attack)).toEqual(OWNERS_ALONE)
  await agent.put(path('n'), login())
  await agent.post(path('n', '/versions/1/restore'))
  expect(await hostsOf()).toEqual(['b.test'])
  expect((await agent.patch(path('n'), { allowedHosts: [] })).body.allowedHosts).toEqual([])
  expect(outcome(await agent.patch(path('n'), {}))).toEqual([
    400,
    'The body must hold allowedHosts, allowedMethods, allowedPaths, placement or reveal',
  ])
  expect((await agent.patch(path('none'), { reveal: 'owner' })).status).toBe(404)
})
