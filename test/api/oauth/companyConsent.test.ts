/** Tests in a browser that a person who signs in with the company account returns to the consent page. */
import { afterAll, beforeAll, describe, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { hasBrowser, startBrowser } from '../../support/console/browser.ts'
import { consoleClient, signInAs } from '../../support/console/consoleSession.ts'
import { signInAt, startIdentityProvider } from '../../support/identityProvider.ts'
import { authorizationOf, register } from '../../support/oauth.ts'
import { freePort } from '../../support/process/process.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import '../../support/long.ts'

describe.skipIf(!hasBrowser)('a person signs in with the company account to connect an app', () => {
  let service: TestService
  let provider: Awaited<ReturnType<typeof startIdentityProvider>>
  let browser: Browser
  beforeAll(async () => {
    const port = await freePort()
    const baseUrl = `http://127.0.0.1:${port}`
    ;[provider, browser] = await Promise.all([startIdentityProvider(baseUrl), startBrowser()])
    service = await startTestService({
      smtp: false,
      pools: ['webhooks'],
      env: { PORT: String(port), BASE_URL: baseUrl, ...provider.env },
    })
  })
  afterAll(async () => {
    await browser?.close()
    await service?.[Symbol.asyncDispose]()
    await provider?.[Symbol.asyncDispose]()
  })

  test('after a person signs in with a company account, the consent page opens again', async () => {
    await service.newAgent()
    const person = await signInAs(service, 'operator')
    const begun = await person.post('/company-account')
    const cookie = begun.headers.get('set-cookie')!.split(';')[0]!
    const { search: query } = await signInAt(begun.body.url, 'ada', service.url)
    const both = consoleClient(service.url, `${person.cookie}; ${cookie}`)
    await both.post('/company-account/answer', { query })

    const { body } = await register(service.url)
    const context = await browser.newContext()
    const page = await context.newPage()
    const asked = authorizationOf(service.url, body.client_id)
    await page.goto(`${service.url}/oauth/authorize?${asked.query}`)
    await page.getByRole('button', { name: 'Continue with 127.0.0.1' }).click()
    await page.locator('input[name="login"]').fill('ada')
    await page.locator('input[name="password"]').fill('x')
    await page.locator('button[type="submit"]').click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Connect an app' }).waitFor({ timeout: 10_000 })
    await context.close()
  })
})
