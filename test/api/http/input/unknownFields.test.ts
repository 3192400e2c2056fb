/** Tests that a misspelt field of a request body causes an error and is not silently dropped. */
import { expect, test } from 'bun:test'
import { Type as t } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import {
  refuseUnknownFields,
  refuseUnknownQuery,
} from '../../../../api/http/input/unknownFields.ts'
import { startTestService } from '../../../support/service.ts'

const SCHEMA = t.Object({
  to: t.Array(t.Object({ address: t.String() }), { maxItems: 2 }),
  sendAt: t.Optional(t.Union([t.String(), t.Null()])),
  limits: t.Optional(t.Union([t.Object({ daily: t.Integer() }), t.Null()])),
  fields: t.Optional(t.Object({}, { additionalProperties: true })),
  headers: t.Optional(t.Record(t.String(), t.String())),
  body: t.Optional(t.Unknown()),
  nothing: t.Optional(t.Object({})),
})

test.each([
  [{}],
  [{ to: [], sendAt: null, limits: null }],
  [{ to: [{ address: 'a@x.test' }], limits: { daily: 1 } }],
  [{ fields: { any: { deep: 1 } }, headers: { 'x-any': '1' }, body: { any: 1 }, nothing: {} }],
  ['no object'],
  [null],
  [[{ any: 1 }]],
])('the body %j is accepted, because the schema knows all its fields', (body) => {
  expect(() => refuseUnknownFields(body, SCHEMA)).not.toThrow()
})

const OF = 'of to, sendAt, limits, fields, headers, body, nothing'
test.each([
  [{ sendAT: 'x' }, `The body must not hold "sendAT": the nearest field is sendAt, ${OF}`],
  [{ toString: 1 }, `The body must not hold "toString": the nearest field is nothing, ${OF}`],
  [{ limits: { dayly: 1 } }, 'limits must not hold "dayly": the nearest field is daily, of daily'],
  [
    { to: [{ address: 'a@x.test' }, { adress: 'b@x.test' }] },
    'to[1] must not hold "adress": the nearest field is address, of address',
  ],
  [{ nothing: { a: 1 } }, 'nothing must not hold "a": it takes no fields'],
])(
  'the error for the body %j names the unknown field and the most similar known field',
  (body, message) => {
    expect(() => refuseUnknownFields(body, SCHEMA)).toThrow(message)
  },
)

test('if the schema of a body allows several forms, the service accepts the fields of each form as known fields', () => {
  const forms = t.Union([
    t.Object({ decision: t.Literal('refuse') }),
    t.Object({ decision: t.Literal('allow'), projectId: t.String() }),
  ])
  expect(() => refuseUnknownFields({ decision: 'allow', projectId: 'p' }, forms)).not.toThrow()
  expect(() => refuseUnknownFields({ decision: 'allow', project: 'p' }, forms)).toThrow(
    'The body must not hold "project": the nearest field is projectId, of decision, projectId',
  )
})

test('the check for unknown fields skips a list that is too long, because the schema refuses the list', () => {
  const tooLong = Array.from({ length: 3 }, () => ({ adress: 'a@x.test' }))
  expect(() => refuseUnknownFields({ to: tooLong }, SCHEMA)).not.toThrow()
  expect(Value.Check(SCHEMA, { to: tooLong.map(() => ({ address: 'a@x.test' })) })).toBe(false)
})

test('the error about an unknown field shows only the first 64 characters of its name', () => {
  const refuse = () => refuseUnknownFields({ ['a'.repeat(5_000)]: 1 }, t.Object({}))
  expect(refuse).toThrow(/^The body must not hold "a{64}": /)
})

test('a query with an unknown parameter is refused, and the error names the most similar known parameter', () => {
  const check = (query: string, known: readonly string[]) =>
    refuseUnknownQuery(new URLSearchParams(query), known)
  expect(() => check('', [])).not.toThrow()
  expect(() => check('limit=1&after=2', ['limit', 'after'])).not.toThrow()
  expect(() => check('limit=1&limt=2', ['limit', 'after'])).toThrow(
    'The query must not hold "limt": the nearest parameter is limit, of limit, after',
  )
  expect(() => check('limit=1', [])).toThrow(
    'The query must not hold "limit": it takes no parameters',
  )
})

test('a query that sets a parameter twice is refused', () => {
  const check = () =>
    refuseUnknownQuery(new URLSearchParams('labels=a&limit=1&labels=b'), ['labels', 'limit'])
  expect(check).toThrow('The query must not set labels twice')
})

test('a mail with the misspelt field `sendAT` is refused, and is neither sent nor stored', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const agent = await service.newAgent()
  const mail = { to: ['a@example.com'], subject: 's', text: 't' }
  const { status, body } = await agent.post('/v0/messages/send', { ...mail, sendAT: '2040-01-01' })
  expect([status, body.error]).toEqual([400, 'bad_request'])
  expect(body.message).toStartWith('The body must not hold "sendAT": the nearest field is sendAt, ')
  expect((await agent.get('/v0/messages')).body.count).toBe(0)
})

test('the x402 facilitator accepts fields of a later x402 version, although the service does not know them', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const agent = await service.newAgent()
  const { body } = await agent.post('/v0/x402/verify', { x402Version: 2, laterField: 1 })
  expect(body.message ?? '').not.toContain('laterField')
})
