/** Tests what the console page shows after the end of a session, and while the database is unreachable. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../../support/console/browser.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

describe.skipIf(!hasBrowser)('the session of an open tab ends', () => {
  let service: TestService
  let browser: Browser
  beforeAll(async () => {
    ;[service, browser] = await Promise.all([
      startTestService({ smtp: false, workers: false }),
      startBrowser(),
    ])
  })
  afterAll(async () => {
    await browser?.close()
    await service?.[Symbol.asyncDispose]()
  })

  test('after the session has ended, the page sends no more requests and keeps the email address that the person has typed', async () => {
    await using console = await openConsole(browser, service)
    const { page, requests } = console
    await page.clock.install()
    await service.database.pool.query('delete from console_sessions')
    await page.getByRole('heading', { name: 'You are not signed in' }).waitFor()
    const address = page.getByLabel('Your e-mail address')
    await address.fill('ada@exam')
    const before = requests.length
    // With a session, the overview loads its figures every two seconds. Without a session, it must send no request
    // within five seconds.
    await page.clock.runFor(5_000)
    expect(requests.slice(before)).toEqual([])
    expect(await address.inputValue()).toBe('ada@exam')
  })

  for (const path of ['/console', '/console/connect']) {
    test(`while the database is unreachable, ${path} does not ask a person to sign in`, async () => {
      await using console = await openConsole(browser, service)
      const { page } = console
      const session = '**/console/api/session'
      const message = 'The service is temporarily unavailable'
      const json = { error: 'unavailable', message, status: 503 }
      await page.route(session, (route) => route.fulfill({ status: 503, json }))
      await page.goto(`${service.url}${path}#/projects`)
      await page.reload()
      await page.getByText(message).waitFor()
      expect(await page.getByLabel('Your e-mail address').count()).toBe(0)
      await page.unroute(session)
      await page.getByRole('button', { name: 'Try again' }).click()
      const next = path === '/console' ? 'Projects' : 'This app cannot be connected'
      await page.getByRole('heading', { name: next }).waitFor()
    })
  }
})
