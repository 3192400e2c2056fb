/** Tests passkeys with the virtual authenticator of Chromium, and with responses that no honest device sends. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { createSignInLink } from '../../../../sql/account/people/consoleSessions.ts'
import { hasBrowser, startBrowser } from '../../../support/console/browser.ts'
import { consoleClient, signIn, signInAs } from '../../../support/console/consoleSession.ts'
import { newDevicePasskey } from '../../../support/console/devicePasskey.ts'
import { changingBefore } from '../../../support/database/beforeStatement.ts'
import { freePort } from '../../../support/process/process.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import { blocked } from '../../../support/till/tillRows.ts'
import '../../../support/long.ts'

let service: TestService
let browser: Browser
let home: string
beforeAll(async () => {
  const port = await freePort()
  // The URL must have a host name, because passkeys do not work with an IP address. Browsers treat `localhost` as
  // secure, even without TLS.
  home = `http://localhost:${port}`
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { PORT: String(port), HOST: '127.0.0.1', BASE_URL: home, RATE_LIMIT_AUTH: '0' },
  })
  if (hasBrowser) browser = await startBrowser()
})
afterAll(async () => {
  await browser?.close()
  await service[Symbol.asyncDispose]()
})

/**
 * Opens a page in a browser with a virtual authenticator. The parameter `isVerified` sets whether the authenticator
 * verifies its user (for example with a PIN).
 */
async function openWithDevice(isVerified = true): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext()
  const page = await context.newPage()
  const devices = await context.newCDPSession(page)
  await devices.send('WebAuthn.enable')
  await devices.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: isVerified,
      automaticPresenceSimulation: true,
    },
  })
  return { context, page }
}

async function addPasskey(page: Page, personId?: string): Promise<void> {
  const token = await createSignInLink(service.database.pool, personId)
  await page.goto(`${home}/console/login#${token}`)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: /Overview|Projects/ }).waitFor()
  await page.goto(`${home}/console#/you`)
  await page.getByRole('button', { name: 'Add passkey' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('laptop')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('cell', { name: 'laptop', exact: true }).waitFor()
}

describe.skipIf(!hasBrowser)('a person signs in with a passkey', () => {
  test('a person adds a passkey and signs in with it, and the service refuses the passkey after its removal', async () => {
    const { context, page } = await openWithDevice()
    const person = await signInAs(service, 'operator')
    await addPasskey(page, person.personId)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const { sessions } = (await person.get('/sessions')).body
    const [theirs] = sessions.filter(
      ({ personId, method }: any) => personId === person.personId && method === 'passkey',
    )
    expect(theirs).toBeDefined()
    const [{ passkeyId }] = (await person.get('/passkeys')).body.passkeys
    const stranger = await signIn(service)
    expect((await stranger.delete(`/passkeys/${passkeyId}`)).status).toBe(404)
    expect((await person.delete(`/passkeys/${passkeyId}`)).status).toBe(204)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await page.getByText('The passkey is refused: nobody here has it').waitFor()
    await context.close()
  })

  test('a passkey challenge works once, only in the browser that requested it, and only if the passkey verified the user', async () => {
    const { context, page } = await openWithDevice()
    await addPasskey(page)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByRole('button', { name: 'Use a passkey' }).waitFor()
    const captured = new Promise<string>((resolve) => {
      void page.route('**/passkey-sessions', async (route) => {
        resolve(route.request().postData()!)
        await route.abort()
      })
    })
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    const body = JSON.parse(await captured)
    const browserCookie = (await context.cookies()).find(({ name }) => name === 'purser_browser')!
    const send = (cookie: string, changed: object = body) =>
      consoleClient(service.url, cookie).post('/passkey-sessions', changed, { origin: home })
    const own = `purser_browser=${browserCookie.value}`
    const forged = structuredClone(body)
    forged.response.signature = Buffer.alloc(70, 7).toString('base64url')
    const elsewhere = await send(`purser_browser=${'A'.repeat(43)}`)
    expect([elsewhere.status, elsewhere.body.message]).toEqual([
      401,
      'The passkey is refused: this browser did not ask for it within five minutes',
    ])
    expect((await send(own)).status).toBe(201)
    // The service must refuse a repeated signature, because a passkey challenge is valid for one attempt. The service
    // must also refuse a forged signature.
    expect((await send(own)).status).toBe(401)
    expect((await send(own, forged)).status).toBe(401)
    await context.close()
  })

  test('the service refuses a passkey of a device that does not verify its user', async () => {
    const { context, page } = await openWithDevice(false)
    const token = await createSignInLink(service.database.pool)
    await page.goto(`${home}/console/login#${token}`)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.goto(`${home}/console#/you`)
    await page.getByRole('button', { name: 'Add passkey' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('found')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('dialog').getByRole('alert').waitFor()
    expect(
      (await (await signIn(service)).get('/passkeys')).body.passkeys.map(({ name }: any) => name),
    ).not.toContain('found')
    await context.close()
  })
})

const withCookies = (...cookies: string[]) => consoleClient(service.url, cookies.join('; '))
const STALE = 'this browser did not ask for it within five minutes'
const NO_CHALLENGE = 'its clientDataJSON holds no challenge'

/** Requests a passkey challenge. @returns the challenge, and the cookie of the browser that requested it. */
async function challengeFrom(path: string, cookie = '') {
  const { headers, body } = await withCookies(cookie).post(path, {}, { origin: home })
  return {
    challenge: body.challenge as string,
    cookie: headers.get('set-cookie')!.split(';')[0]!,
  }
}
/** Adds the passkey of a new device to a new person. */
async function personWithPasskey() {
  const person = await signInAs(service, 'operator')
  const device = newDevicePasskey(home)
  const { challenge, cookie } = await challengeFrom('/passkeys/options', person.cookie)
  const send = (response: object, browser = cookie) =>
    withCookies(person.cookie, browser).post(
      '/passkeys',
      { name: 'phone', response },
      { origin: home },
    )
  const added = await send(device.created(challenge))
  expect(added.status).toBe(201)
  return { person, device, send }
}
/** Signs in with a passkey: `respond` makes the response to a new passkey challenge. */
async function signInWith(respond: (challenge: string) => object) {
  const { challenge, cookie } = await challengeFrom('/passkey-sessions/options')
  const response = respond(challenge)
  return await withCookies(cookie).post('/passkey-sessions', { response }, { origin: home })
}

test('a person cannot add a passkey whose challenge, signature or id is wrong', async () => {
  const { person, device, send } = await personWithPasskey()
  const { challenge, cookie } = await challengeFrom('/passkeys/options', person.cookie)
  const other = newDevicePasskey(home)
  const tries: [response: object, browser: string, message: string][] = [
    [other.created(challenge), '', 'This browser has not asked for a passkey'],
    [other.created(challenge), `purser_browser=${'A'.repeat(43)}`, STALE],
    [other.created('x'.repeat(200)), cookie, STALE],
    [other.created('x'.repeat(201)), cookie, NO_CHALLENGE],
    [other.created(7), cookie, NO_CHALLENGE],
    [other.created(challenge, { isForged: true }), cookie, 'its signature is wrong'],
  ]
  for (const [response, browser, message] of tries) {
    const { status, body } = await send(response, browser)
    expect([status, body.message]).toEqual([400, expect.stringContaining(message)])
  }
  const again = await challengeFrom('/passkeys/options', person.cookie)
  const known = await send(device.created(again.challenge), again.cookie)
  expect([known.status, known.body.message]).toEqual([
    400,
    'The passkey is refused: it is known already, or you have too many',
  ])
  expect((await person.get('/passkeys')).body.passkeys).toHaveLength(1)
})

test('a passkey signs in only its owner, and only with a correct signature of a challenge for the same browser', async () => {
  const { person, device } = await personWithPasskey()
  const stranger = await signInAs(service, 'operator')
  const tries: [respond: (challenge: string) => object, message: string][] = [
    [(text) => device.signed(text, { owner: stranger.personId }), 'it is somebody else’s'],
    [(text) => device.signed(text, { isForged: true }), 'its signature is wrong'],
    [() => device.signed('x'.repeat(43)), STALE],
  ]
  for (const [respond, message] of tries) {
    const { status, body } = await signInWith(respond)
    expect([status, body.message]).toEqual([401, `The passkey is refused: ${message}`])
  }
  const { challenge } = await challengeFrom('/passkey-sessions/options')
  const bare = await withCookies().post(
    '/passkey-sessions',
    { response: device.signed(challenge) },
    { origin: home },
  )
  expect([bare.status, bare.body.message]).toEqual([
    401,
    'The passkey is refused: this browser has not asked for one',
  ])
  const own = await signInWith((text) => device.signed(text, { owner: person.personId }))
  expect(own.status).toBe(201)
})

test('a passkey signs nobody in if its person is removed during the sign-in', async () => {
  const { person, device } = await personWithPasskey()
  const remove = () =>
    service.database.pool.query('delete from people where id = $1', [person.personId])
  const { status, body } = await changingBefore('into console_sessions', remove, () =>
    signInWith((text) => device.signed(text, { owner: person.personId })),
  )
  expect([status, body.message]).toEqual([401, 'The passkey is refused: nobody here has it'])
})

const newAddress = () => ({ email: `${crypto.randomUUID()}@people.example` })

test('after an operator has changed a person’s email address, the old passkeys of the person sign nobody in', async () => {
  const { person, device } = await personWithPasskey()
  const operator = await signIn(service)
  const own = (text: string) => device.signed(text, { owner: person.personId })
  const path = `/people/${person.personId}`
  expect((await operator.patch(path, { name: 'Eve' })).status).toBe(200)
  expect((await signInWith(own)).status).toBe(201)
  expect((await operator.patch(path, newAddress())).status).toBe(200)
  const { status, body } = await signInWith(own)
  expect([status, body.message]).toEqual([401, 'The passkey is refused: nobody here has it'])
})

test('a passkey signs nobody in if the person’s email address changes during the sign-in', async () => {
  const { person, device } = await personWithPasskey()
  const operator = await signIn(service)
  const { status, body } = await changingBefore(
    'update passkeys set counter',
    () => operator.patch(`/people/${person.personId}`, newAddress()),
    () => signInWith((text) => device.signed(text, { owner: person.personId })),
  )
  expect([status, body.message]).toEqual([
    401,
    'The passkey is refused: it was used at the same time',
  ])
  const again = await personWithPasskey()
  const late = await changingBefore(
    'into console_sessions',
    () => operator.patch(`/people/${again.person.personId}`, newAddress()),
    () => signInWith((text) => again.device.signed(text, { owner: again.person.personId })),
  )
  expect(late.status).toBe(401)
})

test('a person whose session ends while a passkey is being added does not get the passkey', async () => {
  const { person } = await personWithPasskey()
  const operator = await signIn(service)
  const { challenge, cookie } = await challengeFrom('/passkeys/options', person.cookie)
  const { status } = await changingBefore(
    'into passkeys',
    () => operator.patch(`/people/${person.personId}`, newAddress()),
    () =>
      withCookies(person.cookie, cookie).post(
        '/passkeys',
        { name: 'phone', response: newDevicePasskey(home).created(challenge) },
        { origin: home },
      ),
  )
  expect(status).toBe(401)
  const { people } = (await operator.get('/people')).body
  expect(people.find(({ personId }: any) => personId === person.personId).passkeys).toBe(0)
})

test('if a passkey and its copy sign in at the same time, the service refuses the copy', async () => {
  const { person, device } = await personWithPasskey()
  const { pool } = service.database
  const other = await pool.connect()
  try {
    await other.query('begin')
    await other.query('update passkeys set counter = 1 where person_id = $1', [person.personId])
    const copied = signInWith((text) => device.signed(text, { counter: 1 }))
    await blocked(pool, 1)
    await other.query('commit')
    const { status, body } = await copied
    expect([status, body.message]).toEqual([
      401,
      'The passkey is refused: it was used at the same time',
    ])
  } finally {
    other.release()
  }
})

test('the service refuses a malformed passkey with a clear error', async () => {
  const client = consoleClient(service.url, '')
  const { headers } = await client.post('/passkey-sessions/options', {}, { origin: home })
  const cookie = headers.get('set-cookie')!.split(';')[0]!
  const response = {
    id: 'AAAA',
    rawId: 'AAAA',
    type: 'public-key',
    clientExtensionResults: {},
    response: { clientDataJSON: 'AAAA', authenticatorData: 'AAAA', signature: 'AAAA' },
  }
  const sent = await consoleClient(service.url, cookie).post(
    '/passkey-sessions',
    { response },
    { origin: home },
  )
  expect([sent.status, sent.body.message]).toEqual([
    401,
    'The passkey is refused: nobody here has it',
  ])
  const wrong = await consoleClient(service.url, cookie).post(
    '/passkey-sessions',
    { response: {} },
    { origin: home },
  )
  expect(wrong.status).toBe(400)
})

test('if the URL of the service has an IP address, the service offers no passkeys and says why', async () => {
  await using numbered = await startTestService({ smtp: false, workers: false })
  const client = consoleClient(numbered.url, '')
  expect((await client.get('/sign-in-ways')).body.passkeys).toBe(false)
  const browser = `purser_browser=${'A'.repeat(43)}`
  const response = newDevicePasskey(numbered.url).signed('AAAA')
  for (const refused of [
    await client.post('/passkey-sessions/options', {}),
    await consoleClient(numbered.url, browser).post('/passkey-sessions', { response }),
  ]) {
    expect([refused.status, refused.body.message]).toEqual([
      409,
      'BASE_URL must hold a name: passkeys need one',
    ])
  }
})
