/**
 * Tests the pages that the service shows to browsers. The page `/` links to all pages, and the page `/docs` calls
 * operations without the internet.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { hasBrowser, screenshot, startBrowser } from '../../support/console/browser.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import '../../support/whole.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const get = (path: string) => fetch(service.url + path)

test('every link on the page / leads to an existing page', async () => {
  const response = await get('/')
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/html; charset=utf-8',
  ])
  expect(response.headers.get('content-security-policy')).toStartWith("default-src 'none'")
  const links = [...(await response.text()).matchAll(/(?:href|src)="([^"]+)"/g)].map(
    ([, path]) => path!,
  )
  expect(links).toEqual(expect.arrayContaining(['/console', '/docs', '/llms.txt', '/readyz']))
  for (const path of links) {
    const { status } = await get(path)
    // The readiness check of the service responds with 503 if no workers run, so the test accepts this status.
    expect([path, [200, 503].includes(status)]).toEqual([path, true])
  }
})

test('/console/ serves the same page as /console', async () => {
  const [one, other] = [await get('/console'), await get('/console/')]
  expect([other.status, await other.text()]).toEqual([200, await one.text()])
})

test('a conditional request for an unchanged file of the API viewer gets status 304', async () => {
  for (const name of ['viewer.js', 'viewer.css', 'start.js']) {
    const first = await get(`/docs/assets/${name}`)
    expect([name, first.status]).toEqual([name, 200])
    const etag = first.headers.get('etag')!
    // Many proxies that compress responses make an entity tag weak (RFC 9110 §8.8.1).
    for (const known of [etag, `W/${etag}`, `"other", W/${etag}`, '*']) {
      const again = await fetch(`${service.url}/docs/assets/${name}`, {
        headers: { 'if-none-match': known },
      })
      expect([name, known, again.status]).toEqual([name, known, 304])
    }
    const changed = { headers: { 'if-none-match': `W/"other"` } }
    expect((await fetch(`${service.url}/docs/assets/${name}`, changed)).status).toBe(200)
  }
  for (const name of ['package.json', '..%2Fstart.js', '__proto__', 'constructor']) {
    expect([name, (await get(`/docs/assets/${name}`)).status]).toEqual([name, 404])
  }
})

describe.skipIf(!hasBrowser)('the API viewer runs in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser.close())

  test('the API viewer calls an operation with a key, shows samples, and contacts no other host', async () => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    const requests: string[] = []
    const complaints: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text())
    })
    await page.goto(`${service.url}/docs`)
    await page.getByRole('button', { name: 'Authorize' }).click()
    await page.getByRole('textbox', { name: /auth/i }).fill(agent.key)
    await page.getByRole('button', { name: 'Apply credentials' }).click()
    await page.getByRole('button', { name: 'Close' }).click()
    // The API viewer renders only the visible part of a long list, so the test filters the list first.
    await page.getByPlaceholder('Filter by tag or path').fill('whoami')
    await page.locator('#operations-Identity-getWhoami .opblock-summary-control').click()
    await page.getByRole('button', { name: 'Execute' }).click()
    const answer = page.locator('.live-responses-table')
    await answer.getByText(agent.address).first().waitFor()
    for (const sample of ['curl', 'JavaScript', 'Python']) {
      await page.locator('.request-snippets').getByText(sample, { exact: true }).waitFor()
    }
    await screenshot(page, 'docs')
    expect(complaints).toEqual([])
    const { origin } = new URL(service.url)
    expect(requests.filter((url) => !url.startsWith('data:') && !url.startsWith(origin))).toEqual(
      [],
    )
    await page.close()
  })
})
