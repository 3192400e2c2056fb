/**
 * Tests that an API key can only narrow the bounds of a credential: its allowed hosts, methods, paths and placement.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type ConsoleClient, signIn } from '../../support/console/consoleSession.ts'
import {
  type Agent,
  type Answer,
  startTestService,
  type TestService,
} from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'

let service: TestService
let owner: ConsoleClient
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  owner = await signIn(service)
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const KEY = { type: 'API_KEY', data: { key: 'sk_live_0123456789' } }
const AWS = { type: 'AWS', data: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 's'.repeat(40) } }
const store = async (name: string, content: object) => {
  const { status, body } = await agent.put(path(name), content)
  expect([status, body.message]).toEqual([200, undefined])
  return body
}
const outcome = ({ status, body }: Pick<Answer, 'status' | 'body'>) => [status, body.message]
const OWNERS_ALONE = [
  403,
  'Only the owner, in the console, may reveal this credential to agents, or widen its allowedHosts, allowedMethods, ' +
    'allowedPaths or placement',
]
const ownersPath = (name: string) => `/projects/${agent.project.id}/v0/vault/-?name=${name}`
const boundsOf = ({ body }: Pick<Answer, 'body'>) => {
  const { allowedHosts, allowedMethods, allowedPaths, placement } = body
  return { allowedHosts, allowedMethods, allowedPaths, placement }
}
const WIDE = {
  allowedHosts: ['api.example.com', '*.eu.example.com'],
  allowedMethods: ['GET', 'POST'],
  allowedPaths: ['/v1', '/v2/items'],
  placement: ['header:authorization', 'json:/token'],
}
const NARROW = {
  allowedHosts: ['a.eu.example.com'],
  allowedMethods: ['GET'],
  allowedPaths: ['/v1/users'],
  placement: ['key@header:authorization'],
}
/** Lists bounds of a credential that are each one step wider than the bounds in {@link NARROW}. */
const WIDER: Record<string, string[]>[] = [
  { allowedHosts: ['*.a.eu.example.com'] },
  { allowedHosts: ['*.eu.example.com'] },
  { allowedHosts: ['a.eu.example.com:8443'] },
  { allowedMethods: ['GET', 'POST'] },
  { allowedPaths: ['/v1'] },
  { allowedPaths: ['/v1/users', '/v1/users2'] },
  { allowedPaths: ['/'] },
  { placement: ['header:authorization'] },
  { placement: ['key@header:authorization', 'key@json:/note'] },
  { placement: ['body'] },
]
const signAws = (name: string, more: object = {}) =>
  agent.post(path(name, '/sign'), {
    ...{ algorithm: 'aws-sigv4', region: 'us-east-1', service: 's3' },
    request: { url: 'https://api.example.com/v1/k', ...more },
  })

test('PATCH with an API key can narrow but not widen a credential’s bounds (where it may be used); the console can widen them', async () => {
  await store('patch', { ...KEY, ...WIDE })
  expect(boundsOf(await agent.patch(path('patch'), NARROW))).toEqual(NARROW)
  for (const wider of [...WIDER, { allowedPaths: null }, { placement: null }]) {
    expect([wider, outcome(await agent.patch(path('patch'), wider))]).toEqual([wider, OWNERS_ALONE])
  }
  expect(boundsOf(await owner.patch(ownersPath('patch'), WIDE))).toEqual(WIDE)
  await store('exact', { ...KEY, allowedHosts: ['s3.amazonaws.com'] })
  const wildcard = await agent.patch(path('exact'), { allowedHosts: ['*.s3.amazonaws.com'] })
  expect(outcome(wildcard)).toEqual(OWNERS_ALONE)
})

test('a PUT with an API key cannot widen the bounds (allowed uses) of a withheld credential, and keeps bounds that the request omits', async () => {
  await store('put', { ...KEY, ...NARROW, reveal: 'owner' })
  for (const wider of [...WIDER, { metadata: { uri: 'https://evil.test' }, allowedHosts: null }]) {
    const answer = await agent.put(path('put'), { ...KEY, ...NARROW, ...wider })
    expect([wider, outcome(answer)]).toEqual([wider, OWNERS_ALONE])
  }
  const moved = await store('put', { ...KEY, metadata: { uri: 'https://evil.test/' } })
  expect(boundsOf({ body: moved })).toEqual(NARROW)
  // The new credential has the type LOGIN, whose default placement (where its secret may be used) differs from that of
  // the previous type. Nevertheless the PUT must not widen the placement.
  const login = await store('put', { type: 'LOGIN', data: { password: 'correct horse' } })
  expect(boundsOf({ body: login })).toEqual(NARROW)
})

test('a PUT with an API key cannot widen bounds (allowed uses) that the owner set, but can set any bounds of the agent’s own secret', async () => {
  await store('bounded', { ...KEY, allowedHosts: ['a.test'] })
  expect((await store('bounded', { ...KEY, allowedHosts: ['b.test'] })).allowedHosts).toEqual([
    'b.test',
  ])
  await owner.patch(ownersPath('bounded'), { allowedHosts: ['c.test', 'd.test'] })
  const wider = await agent.put(path('bounded'), { ...KEY, allowedHosts: ['a.test'] })
  expect(outcome(wider)).toEqual(OWNERS_ALONE)
  expect((await store('bounded', KEY)).allowedHosts).toEqual(['c.test', 'd.test'])
  expect((await store('bounded', { ...KEY, allowedHosts: ['d.test'] })).allowedHosts).toEqual([
    'd.test',
  ])
})

test('if an old credential version has wider bounds (allowed uses), a restore by the owner brings them back, but a restore by an API key does not', async () => {
  await store('restore', { ...KEY, ...WIDE })
  await agent.patch(path('restore'), { allowedHosts: ['api.example.com'] })
  await agent.patch(path('restore'), { allowedHosts: [] })
  await store('restore', { ...KEY, ...NARROW })
  await store('restore', { ...KEY, ...WIDE, allowedHosts: ['*.example.com', 'evil.test'] })
  const third = await agent.post(path('restore', '/versions/2/restore'))
  expect(boundsOf(third)).toEqual(NARROW)
  const restored = await agent.post(path('restore', '/versions/1/restore'))
  expect([restored.status, restored.body.version]).toEqual([200, 5])
  expect(boundsOf(restored)).toEqual({ ...NARROW, allowedHosts: [] })
  const ofOwner = await owner.post(
    `/projects/${agent.project.id}/v0/vault/restore/versions/3/restore`,
  )
  expect(boundsOf(ofOwner)).toEqual({ ...WIDE, allowedHosts: ['*.example.com', 'evil.test'] })
})

test('a restore with an API key keeps the owner’s bounds (allowed uses), even if the agent stored another version in between', async () => {
  await store('between', { ...KEY, allowedHosts: ['a.test', 'b.test'] })
  await owner.put(ownersPath('between'), { ...KEY, allowedHosts: ['b.test'] })
  expect((await agent.put(path('between'), { ...KEY, ...WIDE })).status).toBe(403)
  await store('between', KEY)
  const { body } = await agent.post(path('between', '/versions/1/restore'))
  expect(body.allowedHosts).toEqual(['b.test'])
})

test('an AWS request is signed only for the allowed hosts, methods and paths, and never without an allowed host', async () => {
  await store('none', AWS)
  expect(outcome(await signAws('none'))).toEqual([
    403,
    'Credential "none" must not be used at api.example.com: see its allowedHosts',
  ])
  await store('aws', { ...AWS, ...WIDE })
  expect((await signAws('aws')).status).toBe(200)
  const cases: [object, string][] = [
    [{ url: 'https://evil.test/v1/k' }, 'used at evil.test: see its allowedHosts'],
    [{ method: 'DELETE' }, 'used with DELETE: see its allowedMethods'],
    [{ url: 'https://api.example.com/v2/users' }, 'used at this path: see its allowedPaths'],
    [{ url: 'https://api.example.com/v1/%2e%2e/x' }, 'used at this path: see its allowedPaths'],
  ]
  for (const [more, message] of cases) {
    expect(outcome(await signAws('aws', more))).toEqual([
      403,
      `Credential "aws" must not be ${message}`,
    ])
  }
  expect((await agent.patch(path('aws'), { allowedHosts: [] })).status).toBe(200)
  expect((await signAws('aws')).status).toBe(403)
})

test('after a PUT, the agent cannot tell whether the stored secret was the same or another one', async () => {
  const content = { ...KEY, reveal: 'owner' }
  const item = async () => {
    const { body } = await agent.get('/v0/vault')
    return body.credentials.find(({ name }: { name: string }) => name === 'oracle')
  }
  await store('oracle', content)
  const rotations = [(await item()).lastRotatedAt]
  for (const key of ['a wrong guess', 'a wrong guess', 'another guess', 'another guess']) {
    await store('oracle', { ...KEY, data: { key } })
    rotations.push((await item()).lastRotatedAt)
  }
  // A restore of an old version must not reveal whether two versions have the same secret.
  for (const version of [1, 1, 2]) {
    await agent.post(path('oracle', `/versions/${version}/restore`))
    rotations.push((await item()).lastRotatedAt)
  }
  expect(new Set(rotations).size).toBe(rotations.length)
})

test('the service checks and shows the bounds (allowed uses) of a credential in their canonical form', async () => {
  const body = await store('form', {
    ...KEY,
    allowedHosts: ['A.test'],
    allowedMethods: ['POST', 'GET', 'POST'],
    allowedPaths: ['/v1/', '/b%C3%BCcher', '/bücher'],
    placement: ['header:X-Api-Key', 'header:x-api-key'],
  })
  expect(boundsOf({ body })).toEqual({
    allowedHosts: ['a.test'],
    allowedMethods: ['GET', 'POST'],
    allowedPaths: ['/v1', '/b%C3%BCcher'],
    placement: ['header:x-api-key'],
  })
  expect(boundsOf({ body: await store('plain', KEY) })).toEqual({
    allowedHosts: [],
    allowedMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedPaths: ['/'],
    placement: ['header:authorization'],
  })
  const bad: [object, string][] = [
    [{ allowedPaths: ['v1'] }, 'allowedPaths[0] must'],
    [{ allowedPaths: ['/a/../b'] }, 'allowedPaths[0] must'],
    [{ allowedPaths: ['/a', '/a%2Fb'] }, 'allowedPaths[1] must'],
    [{ allowedPaths: ['/a?b'] }, 'allowedPaths[0] must'],
    [{ allowedMethods: ['get'] }, 'allowedMethods[0] must'],
    [{ placement: ['anywhere'] }, 'placement[0] must'],
    [{ placement: ['header:host'] }, 'placement[0] must'],
    [{ placement: ['json:token'] }, 'placement[0] must'],
    [{ placement: ['query:'] }, 'placement[0] must'],
    [{ placement: Array.from({ length: 41 }, (_, n) => `query:q${n}`) }, 'placement must'],
  ]
  for (const [more, message] of bad) {
    const { status, body: answer } = await agent.put(path('bad'), { ...KEY, ...more })
    expect([more, status, answer.message]).toEqual([more, 400, expect.stringContaining(message)])
  }
})

test('each bound (list of allowed uses) of a credential has at most the documented number of entries', async () => {
  const lists = (more: number): Record<string, string[]> => ({
    allowedHosts: Array.from({ length: 20 + more }, (_, n) => `h${n}.example.com`),
    allowedPaths: Array.from({ length: 20 + more }, (_, n) => `/p${n}`),
    placement: Array.from({ length: 40 + more }, (_, n) => `query:q${n}`),
  })
  const full = { ...lists(0), allowedMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] }
  expect(await store('full', { ...KEY, ...full })).toMatchObject(full)
  for (const [bound, list] of Object.entries(lists(1))) {
    const { status, body } = await agent.put(path('more'), { ...KEY, [bound]: list })
    expect([status, body.message]).toEqual([400, expect.stringContaining(`${bound} must`)])
  }
})
