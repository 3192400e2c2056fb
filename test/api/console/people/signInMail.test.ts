/** Tests sign-in with a link that the service sends by mail, and the notification mails that owners get. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSignInLink } from '../../../../sql/account/people/consoleSessions.ts'
import { askSignInMail } from '../../../../sql/account/people/signInMails.ts'
import { consoleClient, signIn, signInAs } from '../../../support/console/consoleSession.ts'
import { heldAgent } from '../../../support/mail/held.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { withinOneMinute } from '../../../support/rateWindow.ts'
import { startTestService, type TestService, waitForMessages } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
let sink: Sink
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const cookieOf = (headers: Headers) => headers.get('set-cookie')!.split(';')[0]!
const mailTo = (address: string) =>
  waitFor(`a mail to ${address}`, () =>
    sink.mails.find(({ email }) => email.to?.some((to) => to.address === address)),
  )
const tokenOf = (text: string | undefined) => /#([\w-]{43})/.exec(text ?? '')![1]!

/** Requests a sign-in link by mail as a browser does. */
async function askFor(email: string) {
  const answer = await consoleClient(service.url, '').post('/sign-in-mails', { email })
  return { answer, browser: cookieOf(answer.headers) }
}
/** Waits until the jobs that send sign-in links by mail have ended. */
const untilMailed = () =>
  waitFor('the mails of links', async () => {
    const { rowCount } = await service.database.pool.query(
      'select from sign_in_mails where done_at is null',
    )
    return rowCount === 0
  })

test('a sign-in link by mail works once, only in the browser that requested it', async () => {
  const agent = await service.newAgent()
  const person = await signInAs(service, 'owner', [agent.project.id])
  const { answer, browser } = await askFor(person.email.toUpperCase())
  expect(answer.status).toBe(202)
  const mail = await mailTo(person.email)
  expect(mail.email.headers.find(({ key }) => key === 'auto-submitted')?.value).toBe(
    'auto-generated',
  )
  const token = tokenOf(mail.email.text)
  const { rows } = await service.database.pool.query(
    'select l::text as row from console_links l union all select m::text from sign_in_mails m',
  )
  expect(JSON.stringify(rows)).not.toContain(token)
  for (const other of ['', `purser_browser=${'A'.repeat(43)}`]) {
    expect((await consoleClient(service.url, other).post('/sessions', { token })).status).toBe(401)
  }
  const started = await consoleClient(service.url, browser).post('/sessions', { token })
  expect(started.status).toBe(201)
  const session = consoleClient(service.url, cookieOf(started.headers))
  expect((await session.get('/session')).body.person).toEqual({
    personId: person.personId,
    name: 'Ada',
    email: person.email,
    role: 'owner',
  })
  expect((await consoleClient(service.url, browser).post('/sessions', { token })).status).toBe(401)
  const { logs } = (await (await signIn(service)).get('/organization/logs')).body
  expect(
    logs.find(
      ({ action, actor }: any) => action === 'session.start' && actor === `console:${person.email}`,
    ),
  ).toBeDefined()
})

test('a sign-in request for an unknown email address gets the same response, and no mail is sent', async () => {
  const agent = await service.newAgent()
  const person = await signInAs(service, 'viewer', [agent.project.id])
  const [known, unknown] = [await askFor(person.email), await askFor('nobody@people.example')]
  expect([unknown.answer.status, unknown.answer.body]).toEqual([202, known.answer.body])
  expect([...unknown.answer.headers.keys()]).toEqual([...known.answer.headers.keys()])
  await mailTo(person.email)
  await untilMailed()
  const mailed = sink.mails.flatMap(({ email }) => email.to?.map(({ address }) => address))
  expect(mailed).not.toContain('nobody@people.example')
})

test('a sign-in request without a valid email address is refused', async () => {
  const { status, body } = await consoleClient(service.url, '').post('/sign-in-mails', {
    email: 'no address',
  })
  expect([status, body.message]).toEqual([
    400,
    'email must be one email address, such as ada@example.com',
  ])
})

test('an email address gets at most ten sign-in links an hour', async () => {
  const person = await signInAs(service, 'operator')
  await withinOneMinute()
  const answers = await Promise.all(Array.from({ length: 14 }, () => askFor(person.email)))
  expect(answers.map(({ answer }) => answer.status)).toEqual(Array<number>(14).fill(202))
  await untilMailed()
  const mailed = sink.mails.filter(({ email }) => email.to?.[0]?.address === person.email)
  expect(mailed.length).toBeLessThanOrEqual(10)
  expect(mailed.length).toBeGreaterThan(0)
})

test('if strangers request many sign-in links, a browser in which the person has signed in before still gets a link', async () => {
  const person = await signInAs(service, 'operator')
  const token = await createSignInLink(service.database.pool, person.personId)
  const { headers } = await consoleClient(service.url, '').post('/sessions', { token })
  const [, proof = ''] = headers.getSetCookie()
  expect(proof).toMatch(
    /^purser_known=[\w-]{43}; Max-Age=15552000; Path=\/; HttpOnly; SameSite=Strict$/,
  )
  const known = consoleClient(service.url, cookieOf(new Headers({ 'set-cookie': proof })))
  const asked = async () => {
    const { rows } = await service.database.pool.query(
      'select count(*)::int as n from sign_in_mails where email = $1',
      [person.email],
    )
    return rows[0].n
  }
  const request = { email: person.email, browser: 'b' }
  const { pool } = service.database
  for (let n = 0; n < 11; n++) await askSignInMail(pool, { ...request, isKnown: false })
  expect(await asked()).toBe(10)
  await withinOneMinute()
  for (const client of [consoleClient(service.url, ''), known]) {
    await client.post('/sign-in-mails', { email: person.email })
  }
  expect(await asked()).toBe(11)
  for (let n = 0; n < 11; n++) await askSignInMail(pool, { ...request, isKnown: true })
  expect(await asked()).toBe(20)
})

test('one network begins at most thirty sign-ins a minute', async () => {
  await withinOneMinute()
  const answers = await Promise.all(Array.from({ length: 40 }, () => askForStatus()))
  expect(answers.filter((status) => status === 429).length).toBeGreaterThanOrEqual(10)
})
const askForStatus = async () =>
  (await consoleClient(service.url, '').post('/sign-in-mails', { email: 'x@people.example' }))
    .status

test('the /64 networks of one /48 network together begin at most sixty sign-ins a minute', async () => {
  await using own = await startTestService({
    smtp: false,
    workers: false,
    env: { TRUSTED_PROXIES: '127.0.0.1' },
  })
  const askFrom = async (address: string) => {
    const { status } = await fetch(`${own.url}/console/api/sign-in-mails`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-purser-console': '1',
        'x-forwarded-for': address,
      },
      body: JSON.stringify({ email: 'x@people.example' }),
    })
    return status
  }
  await withinOneMinute()
  const statuses: number[] = []
  // Requests for the same email address wait for each other, so the test sends only five requests at the same time.
  for (let first = 0; first < 70; first += 5) {
    const some = Array.from({ length: 5 }, (_, n) => askFrom(`2001:db8:1:${first + n}::1`))
    statuses.push(...(await Promise.all(some)))
  }
  expect(statuses).toEqual([...Array(60).fill(202), ...Array(10).fill(429)])
  expect([await askFrom('2001:db8:2::1'), await askFrom('192.0.2.1')]).toEqual([202, 202])
})

test('the service sends no sign-in link to an address in one of its own mail domains', async () => {
  const person = await signInAs(service, 'operator')
  const email = `eve@agents-${crypto.randomUUID()}.example`
  const { pool } = service.database
  await pool.query('update people set email = $2 where id = $1', [person.personId, email])
  await pool.query(
    `insert into mail_domains (domain, token, dkim_selector, dkim_record) values ($1, 't', 's', 'r')`,
    [email.split('@')[1]],
  )
  await pool.query(`delete from rate_windows`)
  expect((await askFor(email)).answer.status).toBe(202)
  await untilMailed()
  expect(sink.mails.some(({ email: mail }) => mail.to?.[0]?.address === email)).toBe(false)
})

test('each owner of a project gets a separate approval link for a mail, and the link ends when its recipient is no longer an owner', async () => {
  const agent = await heldAgent(service)
  const [one, other] = [
    await signInAs(service, 'owner', [agent.project.id]),
    await signInAs(service, 'owner', [agent.project.id]),
  ]
  const viewer = await signInAs(service, 'viewer', [agent.project.id])
  await sendMail(agent, { to: ['bo@example.com'], subject: 'Offer', text: 'Shall I?' })
  const links = await Promise.all(
    [one, other].map(async ({ email }) => {
      const { email: mail } = await mailTo(email)
      return /https?:\/\/\S+(\/approve\/\S+)/.exec(mail.text ?? '')![1]!
    }),
  )
  expect(links[0]).not.toBe(links[1])
  expect(sink.mails.some(({ email }) => email.to?.[0]?.address === viewer.email)).toBe(false)
  const open = async (path: string) => (await fetch(`${service.url}${path}`)).status
  expect([await open(links[0]!), await open(links[1]!)]).toEqual([200, 200])
  const operator = await signIn(service)
  await operator.patch(`/people/${one.personId}`, { role: 'viewer' })
  expect([await open(links[0]!), await open(links[1]!)]).toEqual([404, 200])
})

test('a viewer reads mail without the one-time codes in it', async () => {
  const [agent, sender] = [await service.newAgent(), await service.newAgent()]
  await sendMail(sender, {
    to: [agent.address],
    subject: 'Your code',
    text: 'Your verification code is 482913.',
  })
  await waitForMessages(agent, 1)
  const codes = async (role: 'viewer' | 'owner') => {
    const person = await signInAs(service, role, [agent.project.id])
    const { body } = await person.get(`/projects/${agent.project.id}/v0/messages`)
    const { messageId } = body.messages[0]
    const path = `/projects/${agent.project.id}/v0/messages/${encodeURIComponent(messageId)}`
    return (await person.get(path)).body.codes?.map(({ value }: any) => value)
  }
  expect(await codes('owner')).toEqual(['482913'])
  expect(await codes('viewer')).toBeUndefined()
})
