import { afterAll, beforeAll, expect, test } from 'bun:test'
import Ajv from 'ajv/dist/2020'
import addFormats from 'ajv-formats'
import { messagePath, startTestService, type TestService } from '../../support/service.ts'

let service: TestService
let document: any
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  document = await (await fetch(`${service.url}/openapi.json`)).json()
})
afterAll(() => service[Symbol.asyncDispose]())

const operations = (): [string, string, any][] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods as object).map(
      ([method, operation]) => [method, path, operation] as [string, string, any],
    ),
  )

test('the document is OpenAPI 3.1 and has every route', () => {
  expect(document.openapi).toBe('3.1.0')
  expect(operations().map(([method, path]) => `${method} ${path}`)).toEqual(
    expect.arrayContaining([
      'get /v0/messages',
      'get /v0/messages/{messageId}',
      'patch /v0/messages/{messageId}',
      'post /v0/messages/send',
      'post /v0/messages/{messageId}/reply',
      'get /v0/threads',
      'get /v0/threads/{threadId}',
      'put /v0/vault/{name}',
      'post /v0/vault/{name}/totp/backup',
      'get /v0/logs',
      'get /v0/whoami',
      'post /v0/platform/projects',
      'delete /v0/platform/identities/{projectId}',
      'get /healthz',
    ]),
  )
  const ids = operations().map(([, , operation]) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

test('every required field of every schema is described', () => {
  const missing: string[] = []
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return
    const { type, required, properties } = value as Record<string, any>
    if (type === 'object' && Array.isArray(required)) {
      for (const name of required) {
        if (properties?.[name] === undefined) missing.push(`${path}.${name}`)
      }
    }
    for (const [key, inner] of Object.entries(value)) visit(inner, `${path}/${key}`)
  }
  visit(document, '')
  expect(missing).toEqual([])
  expect(Object.keys(document.components.schemas.Error.properties)).toEqual([
    'error',
    'message',
    'status',
  ])
})

test('every operation has its scope, its errors and an example', () => {
  for (const [method, path, operation] of operations()) {
    const name = `${method} ${path}`
    const guarded = path.startsWith('/v0/') && !path.startsWith('/v0/x402/discovery/')
    expect([name, operation.security.length]).toEqual([name, guarded ? 1 : 0])
    for (const status of guarded ? ['401', '429', '500', '503'] : ['500']) {
      expect([name, operation.responses[status]?.content['application/json'].schema]).toEqual([
        name,
        { $ref: '#/components/schemas/Error' },
      ])
    }
    const readsBody = method !== 'get'
    for (const status of ['408', '413', '415']) {
      expect([name, status, status in operation.responses]).toEqual([name, status, readsBody])
    }
    if (operation.requestBody !== undefined) {
      expect(operation.requestBody.content['application/json'].example).toBeDefined()
    }
    for (const [, parameter] of path.matchAll(/\{(\w+)\}/g)) {
      expect(operation.parameters).toContainEqual(
        expect.objectContaining({ name: parameter, in: 'path', required: true }),
      )
    }
  }
  const statuses = (path: string, method: string) =>
    Object.keys(document.paths[path][method].responses).filter((status) => status < '300')
  expect(statuses('/v0/email-rules', 'post')).toEqual(['200', '201'])
  expect(statuses('/v0/sellers/endpoints', 'put')).toEqual(['200', '201'])
  expect(statuses('/v0/messages/wait', 'get')).toEqual(['200', '204'])
  expect(document.paths['/v0/messages/send'].post.security).toEqual([{ key: ['mail:send'] }])
})

test('examples and real answers match their schemas', async () => {
  for (const [method, path, operation] of operations()) {
    for (const media of [operation.requestBody, ...Object.values(operation.responses as object)]) {
      const { schema, example } = media?.content?.['application/json'] ?? {}
      if (example === undefined) continue
      expect([method, path, errorsOf(schema, example)]).toEqual([method, path, []])
    }
  }
  const agent = await service.newAgent()
  const sent = await agent.post('/v0/messages/send', {
    to: ['a@example.com'],
    subject: 's',
    text: 't',
  })
  await agent.put('/v0/vault/n', { type: 'TOTP', data: { secret: 'JBSWY3DPEHPK3PXP', a: [1] } })
  const answers: [string, string, number, any][] = [
    [
      'put',
      '/v0/vault/{name}',
      200,
      await agent.put('/v0/vault/m', { type: 'AWS', data: { a: 1 } }),
    ],
    ['get', '/v0/vault', 200, await agent.get('/v0/vault')],
    ['get', '/v0/vault/{name}', 200, await agent.get('/v0/vault/n')],
    ['get', '/v0/vault/{name}/totp', 200, await agent.get('/v0/vault/n/totp')],
    ['get', '/v0/vault/{name}/versions', 200, await agent.get('/v0/vault/n/versions')],
    ['get', '/v0/vault/{name}/versions/{version}', 200, await agent.get('/v0/vault/n/versions/1')],
    [
      'post',
      '/v0/vault/{name}/versions/{version}/restore',
      200,
      await agent.post('/v0/vault/n/versions/1/restore'),
    ],
    ['get', '/v0/logs', 200, await agent.get('/v0/logs')],
    ['post', '/v0/messages/send', 201, sent],
    ['get', '/v0/messages', 200, await agent.get('/v0/messages')],
    ['get', '/v0/messages/{messageId}', 200, await agent.get(messagePath(sent.body.messageId))],
    ['get', '/v0/threads', 200, await agent.get('/v0/threads')],
    ['get', '/v0/threads/{threadId}', 200, await agent.get(`/v0/threads/${sent.body.threadId}`)],
    ['get', '/v0/whoami', 200, await agent.get('/v0/whoami')],
    [
      'post',
      '/v0/platform/projects',
      201,
      await service.platform.post('/v0/platform/projects', {}),
    ],
    ['get', '/v0/platform/identities', 200, await service.platform.get('/v0/platform/identities')],
  ]
  for (const [method, path, status, answer] of answers) {
    expect([path, answer.status]).toEqual([path, status])
    const { schema } = document.paths[path][method].responses[status].content['application/json']
    expect([path, errorsOf(schema, answer.body)]).toEqual([path, []])
  }
})

const ajv = addFormats(new Ajv({ strict: false }))

/** The errors of a JSON Schema validator. */
function errorsOf(schema: object, value: unknown): string[] {
  const validate = ajv.compile(schema)
  validate(value)
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}
