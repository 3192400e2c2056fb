import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Browser } from 'playwright-core'
import { createSignInLink } from '../../../sql/account/people/consoleSessions.ts'
import { judge } from '../../support/console/axe.ts'
import { hasBrowser, openConsole, startBrowser } from '../../support/console/browser.ts'
import {
  authorizationOf,
  callMcp,
  register,
  startOAuthService,
  token,
} from '../../support/oauth.ts'
import type { Agent, TestService } from '../../support/service.ts'
import '../../support/long.ts'

describe.skipIf(!hasBrowser)('an owner uses the consent page in a browser', () => {
  let service: TestService
  let agent: Agent
  let browser: Browser
  let clientId: string
  let redirect: string
  /**
   * Runs a test server that plays the role of the OAuth app. It records the query of each redirect that the browser
   * follows to it.
   */
  let app: ReturnType<typeof Bun.serve>
  let answers: URLSearchParams[] = []

  beforeAll(async () => {
    ;[service, browser] = await Promise.all([startOAuthService(), startBrowser()])
    agent = await service.newAgent()
    app = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        const { pathname, searchParams } = new URL(request.url)
        if (pathname === '/callback') answers.push(searchParams)
        return new Response('<title>App</title>Done', { headers: { 'content-type': 'text/html' } })
      },
    })
    redirect = `http://127.0.0.1:${app.port}/callback`
    const { body } = await register(service.url, {
      redirect_uris: [redirect],
      client_name: 'Notes',
    })
    clientId = body.client_id
  })
  afterAll(async () => {
    await browser?.close()
    await app?.stop(true)
    await service?.[Symbol.asyncDispose]()
  })

  const ask = () => {
    answers = []
    return authorizationOf(service.url, clientId, {
      redirect_uri: redirect,
      scope: 'mail:read mail:codes',
    })
  }

  test('an owner reads which scopes an app wants, allows the app, and later disconnects it', async () => {
    await using console = await openConsole(browser, service, { bypassCSP: true })
    const { page, context } = console
    await context.addInitScript(axe.source)
    const asked = ask()
    await page.goto(`${service.url}/oauth/authorize?${asked.query}`)
    await page.getByRole('heading', { name: 'Connect an app' }).waitFor()
    const text = await page.locator('main').textContent()
    for (const part of ['“Notes”', 'nobody has verified', 'this computer', agent.address]) {
      expect(text).toContain(part)
    }
    expect(await page.getByLabel('read your mail').isChecked()).toBe(true)
    expect(await page.getByLabel('read one-time codes').isChecked()).toBe(false)
    await judge(console, 'connect')
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${redirect}?**`)
    const [answer] = answers
    expect(answer!.get('iss')).toBe(service.url)
    const { body } = await token(service.url, {
      grant_type: 'authorization_code',
      code: answer!.get('code')!,
      client_id: clientId,
      redirect_uri: redirect,
      code_verifier: asked.verifier,
    })
    expect(body.scope).toBe('mail:read')
    expect((await callMcp(service.url, body.access_token)).status).toBe(200)

    await console.open('apps')
    await page.getByRole('button', { name: `Disconnect Notes from ${agent.address}` }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click()
    await page.getByText('No app is connected').waitFor()
    expect((await callMcp(service.url, body.access_token)).status).toBe(401)
    expect(console.complaints).toEqual([])
  })

  test('if the owner denies consent, the app gets an error that says so', async () => {
    await using console = await openConsole(browser, service)
    await console.page.goto(`${service.url}/oauth/authorize?${ask().query}`)
    await console.page.getByRole('button', { name: 'Deny' }).click()
    await console.page.waitForURL(`${redirect}?**`)
    expect(answers[0]!.get('error')).toBe('access_denied')
  })

  test('an owner who is not signed in pastes a sign-in link on the consent page, and can then give consent', async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 780 } })
    const page = await context.newPage()
    await page.goto(`${service.url}/oauth/authorize?${ask().query}`)
    const link = await createSignInLink(service.database.pool)
    await page.getByLabel('Sign-in link').fill(`${service.url}/console/login#${link}`)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${redirect}?**`)
    expect(answers[0]!.get('code')).toStartWith('locd-')
    await context.close()
  })
})
