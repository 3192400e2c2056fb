import { afterAll, beforeAll, expect, test } from 'bun:test'
import Ajv from 'ajv/dist/2020'
import addFormats from 'ajv-formats'
import { undocumented } from '../../support/documentedAnswers.ts'
import { startTestService, type TestService } from '../../support/service.ts'

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

test('the OpenAPI document has version 3.1 and contains every route', () => {
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

/**
 * Returns the inputs inside a schema that have no upper bound. A text input has an upper bound if its schema has a
 * `pattern`, a list of values or a date format.
 */
function unbounded(schema: any, place: string, said = '', seen: unknown[] = []): string[] {
  const reference = schema?.$ref?.split('/').slice(1)
  const given = reference?.reduce((at: any, key: string) => at[key], document) ?? schema
  if (given === true || given === undefined) return [place]
  if (seen.includes(given)) return []
  const words = given.description ?? said
  const below = (inner: any, name: string, about = '') =>
    unbounded(inner, place + name, about, [...seen, given])
  const choices = given.anyOf ?? given.oneOf ?? given.allOf
  if (choices !== undefined) return choices.flatMap((one: any) => below(one, '', words))
  if (given.const !== undefined || given.enum !== undefined) return []
  const is = (...types: string[]) => [given.type].flat().some((type) => types.includes(type))
  const isCut = /counts as 100|cut after/.test(words)
  const isOpen =
    (is('string') && !('maxLength' in given || 'pattern' in given || 'format' in given)) ||
    (is('integer', 'number') && !('maximum' in given)) ||
    (is('array') && !('maxItems' in given))
  return [
    ...(isOpen && !isCut ? [place] : []),
    ...(is('array') ? below(given.items, '[]') : []),
    ...Object.entries(given.properties ?? {}).flatMap(([name, one]) => below(one, `.${name}`)),
  ]
}

test('every input of every operation has an upper bound, or its description says that the service truncates it', () => {
  const inputs = operations().flatMap(([method, path, { parameters = [], requestBody }]) => [
    ...parameters.map((one: any) => [one.schema, `${method} ${path} ${one.name}`, one.description]),
    ...Object.values(requestBody?.content ?? {}).map((one: any) => [
      one.schema,
      `${method} ${path}`,
    ]),
  ])
  expect(inputs.length).toBeGreaterThan(200)
  expect(inputs.flatMap(([schema, place, said]) => unbounded(schema, place, said))).toEqual([])
})

test('every required field of every schema has a description', () => {
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

test('every operation of the OpenAPI document has its scope, its errors and an example', () => {
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
  expect(document.paths['/metrics'].get.responses['401'].description).toContain('METRICS_TOKEN')
})

test('a parameter is required in the OpenAPI document if the API refuses a request without it', async () => {
  const required = operations().flatMap(([method, path, { parameters = [] }]) =>
    parameters
      .filter((one: any) => one.required && one.in !== 'path')
      .map((one: any) => `${method} ${path} ${one.name}`),
  )
  expect(required).toEqual([
    'post /v0/purse/pay Idempotency-Key',
    'post /v0/payments/{paymentId}/refund Idempotency-Key',
    'get /v0/x402/discovery/search query',
  ])
  expect((await fetch(`${service.url}/v0/x402/discovery/search`)).status).toBe(400)
  const agent = await service.newAgent()
  const pay = await agent.post('/v0/purse/pay', { url: 'https://a.example/', maxAmount: '1' })
  expect([pay.status, pay.body.message]).toEqual([400, expect.stringContaining('Idempotency-Key')])
})

test('the schema of a request body refuses unknown fields at every depth, as the API does', () => {
  const schemaOf = (path: string, method: string) =>
    document.paths[path][method].requestBody.content['application/json'].schema
  const accepts = (path: string, body: object, method = 'post') =>
    errorsOf(schemaOf(path, method), body).length === 0
  const mail = { to: ['ada@example.com'], subject: 'Offer', text: 'Hello' }
  const file = { filename: 'a.txt', contentType: 'text/plain', content: 'aGk=' }
  const send = '/v0/messages/send'
  expect(accepts(send, { ...mail, attachments: [file] })).toBe(true)
  expect(accepts(send, { ...mail, sendat: '2030-01-01T00:00:00Z' })).toBe(false)
  expect(accepts(send, { ...mail, attachments: [{ ...file, name: 'a' }] })).toBe(false)
  // These inputs need no upper bound: header names may be any names, and other standards define the request body of a
  // facilitator call.
  expect(accepts(send, { ...mail, headers: { 'X-Ticket': '7' } })).toBe(true)
  const { properties } = schemaOf('/v0/x402/verify', 'post')
  expect(JSON.stringify(properties)).not.toContain('"additionalProperties":false')
})

test('the examples in the OpenAPI document match their schemas', () => {
  for (const [method, path, operation] of operations()) {
    for (const media of [operation.requestBody, ...Object.values(operation.responses as object)]) {
      const { schema, example } = media?.content?.['application/json'] ?? {}
      if (example === undefined) continue
      expect([method, path, errorsOf(schema, example)]).toEqual([method, path, []])
    }
  }
})

test('the tests compare each response that they get with the OpenAPI document', async () => {
  const { status, body } = await (await service.newAgent()).get('/v0/whoami')
  const differences = (changes: object) =>
    undocumented(service.url, { method: 'GET', path: '/v0/whoami?a=b', status, body, ...changes })
  expect(await differences({})).toEqual([])
  expect(await differences({ path: '/v0/unknown' })).toEqual([])
  const at = 'GET /v0/whoami 200'
  expect(await differences({ status: 418 })).toEqual(['GET /v0/whoami 418 is not documented'])
  expect(await differences({ body: { ...body, extra: 1 } })).toEqual([
    `${at}  must NOT have additional properties extra`,
  ])
  expect(await differences({ body: { ...body, email: 1 } })).toContain(
    `${at} /email must be string `,
  )
})

const ajv = addFormats(new Ajv({ strict: false }))

/** Returns the errors that a JSON Schema validator reports. */
function errorsOf(schema: object, value: unknown): string[] {
  const validate = ajv.compile(schema)
  validate(value)
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}
