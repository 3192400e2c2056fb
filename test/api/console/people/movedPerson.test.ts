/** Tests what becomes of a person's company account when an operator changes the person's email address. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  type ConsoleClient,
  consoleClient,
  signIn,
  signInAs,
} from '../../../support/console/consoleSession.ts'
import { changingBefore } from '../../../support/database/beforeStatement.ts'
import { signInAt, startIdentityProvider } from '../../../support/identityProvider.ts'
import { freePort } from '../../../support/process/process.ts'
import { startTestService, type TestService } from '../../../support/service.ts'

let service: TestService
let provider: Awaited<ReturnType<typeof startIdentityProvider>>
let operator: ConsoleClient
beforeAll(async () => {
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  provider = await startIdentityProvider(baseUrl)
  service = await startTestService({
    smtp: false,
    pools: ['webhooks'],
    env: { PORT: String(port), BASE_URL: baseUrl, ...provider.env },
  })
  operator = await signIn(service)
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
})

/** Begins a sign-in at the identity provider, and returns the status of the service's answer to its end. */
async function visit(path: string, login: string, session = ''): Promise<number> {
  const begun = await consoleClient(service.url, session).post(path, {})
  const browser = begun.headers.get('set-cookie')!.split(';')[0]!
  const back = await signInAt(begun.body.url, login, service.url)
  const client = consoleClient(service.url, `${session}; ${browser}`)
  return (await client.post(`${path}/answer`, { query: back.search })).status
}
const connect = (person: ConsoleClient, login: string) =>
  visit('/company-account', login, person.cookie)
const enter = (login: string) => visit('/company-sign-ins', login)
const move = async (personId: string) => {
  const email = `${crypto.randomUUID()}@people.example`
  expect((await operator.patch(`/people/${personId}`, { email })).status).toBe(200)
}

test('after an operator has changed a person’s email address, the old company account of the person signs nobody in', async () => {
  const person = await signInAs(service, 'viewer')
  expect(await connect(person, 'moved')).toBe(204)
  expect(await enter('moved')).toBe(201)
  await move(person.personId)
  expect(await enter('moved')).toBe(401)
})

test('a person whose session ends while a company account is being connected does not get the account', async () => {
  const person = await signInAs(service, 'viewer')
  const status = await changingBefore(
    'person_id = $2 returning issuer',
    () => move(person.personId),
    () => connect(person, 'late'),
  )
  expect(status).toBe(401)
  expect(await enter('late')).toBe(401)
})

test('a company account signs nobody in if the person’s email address changes during the sign-in', async () => {
  const person = await signInAs(service, 'viewer')
  expect(await connect(person, 'entering')).toBe(204)
  const status = await changingBefore(
    'into console_sessions',
    () => move(person.personId),
    () => enter('entering'),
  )
  expect(status).toBe(401)
})
