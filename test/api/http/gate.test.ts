/** Tests that a rate limit admits the last allowed request, and that a limit of 0 admits all requests. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { countFailedSignIn, countFurther, GateRefusal } from '../../../api/http/gate.ts'
import {
  attachState,
  identityOf,
  newRequestState,
  projectOf,
  stateOf,
} from '../../../api/http/requestState.ts'
import type { Services } from '../../../api/http/services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const services = (limit: number, pool: unknown = database.pool) =>
  ({
    gatePool: pool,
    config: { limits: { requestsPerMinute: limit, authFailuresPerMinute: limit } },
  }) as Services
const NO_DATABASE = { query: () => Promise.reject(new Error('a statement was sent')) }
const further = (projectId: string, calls: number, limit = 3) =>
  countFurther(services(limit), projectId, calls).then(
    () => 'admitted',
    (error) => (error instanceof GateRefusal ? error.error.status : error),
  )
const signIn = (subject: string, limit = 2) =>
  countFailedSignIn(services(limit), subject).then(
    () => 'counted',
    (error) => error.status,
  )
/** Moves the current minute of the rate limit into the future, so that this minute cannot end between two requests. */
const freeze = () =>
  database.pool.query(`update rate_windows set window_start = window_start + interval '1 minute'`)

test('the rate limit counts each call inside one HTTP request, and admits exactly the allowed number of concurrent calls', async () => {
  expect(await further('prj_a', 1)).toBe('admitted')
  await freeze()
  expect(await further('prj_a', 2)).toBe('admitted')
  expect(await further('prj_a', 1)).toBe(429)
  expect(await further('prj_b', 4)).toBe(429)
})

test('the rate limit counts failed sign-ins for their IP address, and refuses further sign-ins from this address once the limit is reached', async () => {
  expect(await signIn('192.0.2.1')).toBe('counted')
  await freeze()
  expect(await signIn('192.0.2.1')).toBe('counted')
  expect(await signIn('192.0.2.1')).toBe(429)
  expect(await signIn('192.0.2.2')).toBe('counted')
})

test('the service writes no request count to the database if the rate limit is 0, or if an MCP batch makes no additional calls', async () => {
  await countFurther(services(0, NO_DATABASE), 'prj_c', 5)
  await countFurther(services(3, NO_DATABASE), 'prj_c', 0)
  await countFailedSignIn(services(0, NO_DATABASE), '192.0.2.3')
  const { rowCount } = await database.pool.query(
    `select from rate_windows where subject in ('prj_c', 'ip:192.0.2.3')`,
  )
  expect(rowCount).toBe(0)
})

const request = (identity: object | null) => {
  const made = new Request('http://purser.example/')
  attachState(made, { ...newRequestState('req_1'), identity: identity as never })
  return made
}

test('reading the state, identity or project of a request throws an error if the request did not pass the gate (the access check)', () => {
  expect(() => stateOf(new Request('http://purser.example/'))).toThrow('the request has no state')
  expect(() => identityOf(request(null))).toThrow('this route asks for no key')
  for (const identity of [
    { projectId: null, inboxAddress: null },
    { projectId: 'prj_1', inboxAddress: null },
    { projectId: null, inboxAddress: 'a@mail.test' },
  ]) {
    expect(() => projectOf(request(identity))).toThrow('this route admits platform keys')
  }
  const identity = { projectId: 'prj_1', inboxAddress: 'a@mail.test' }
  expect(projectOf(request(identity))).toEqual(identity)
})
