/**
 * Tests lists of the console: filters in the URL, DOM elements only for visible rows, and the scroll position after
 * Back.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import {
  type ConsolePage,
  drawn,
  hasBrowser,
  openConsole,
  startBrowser,
} from '../../../../support/console/browser.ts'
import { addDeliveries, cellsOf } from '../../../../support/console/rows.ts'
import { type Agent, startTestService, type TestService } from '../../../../support/service.ts'
import { waitFor } from '../../../../support/waitFor.ts'
import '../../../../support/whole.ts'

const TABLE = 'Webhook deliveries'
const ROWS = 640
/**
 * Limits the number of list rows in the DOM to four pages of fifty rows. The DOM contains the visible rows, and the
 * rows of one screen height above and below them.
 */
const ROWS_SHOWN_MAX = 200

let service: TestService
let browser: Browser
let agent: Agent
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([
    startTestService({ smtp: false, workers: false }),
    startBrowser(),
  ])
  agent = await service.newAgent()
  await addDeliveries(service, agent, { count: ROWS })
  await service.database.pool.query(
    `update webhook_deliveries set status = 'exhausted' where url like '%/event-7/'`,
  )
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

const screen = () => `projects/${agent.project.id}/webhooks`
const urls = (page: Page) => cellsOf(page, TABLE, 'To')
const numberOf = (url: string) => Number(/event-(\d+)/.exec(url)![1])
const rowOf = (page: Page, n: number) => page.getByRole('row', { name: `/event-${n}/` })

/**
 * Scrolls down a list until the row with number n appears. @returns the highest number of rows that were in the DOM at
 * the same time.
 */
async function scrollTo({ page }: ConsolePage, n: number): Promise<number> {
  let most = 0
  await waitFor(`row ${n}`, async () => {
    const shown = await urls(page)
    most = Math.max(most, shown.length)
    if (shown.some((url) => numberOf(url) === n)) return true
    await page.mouse.wheel(0, 1_500)
    return false
  })
  await rowOf(page, n).scrollIntoViewIfNeeded()
  return most
}

describe.skipIf(!hasBrowser)('the console shows a long list', () => {
  for (const width of [1440, 360]) {
    test(`a long list loads rows while a person scrolls, and keeps only few rows in the page at ${width} px`, async () => {
      await using console = await openConsole(browser, service, { width })
      const { page, complaints } = console
      await console.open(screen())
      expect(await scrollTo(console, 1)).toBeLessThanOrEqual(ROWS_SHOWN_MAX)
      const end = await urls(page)
      expect(end.length).toBeLessThanOrEqual(ROWS_SHOWN_MAX)
      // The rows of the tested list have consecutive numbers, so the test notices if the list repeats or omits a row.
      const numbers = end.map(numberOf)
      expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! - at))
      expect(await rowOf(page, 1).getAttribute('aria-rowindex')).toBe(String(ROWS + 1))
      await waitFor('the first row again', async () => {
        await page.mouse.wheel(0, -4_000)
        return (await urls(page)).some((url) => numberOf(url) === ROWS)
      })
      expect((await urls(page)).length).toBeLessThanOrEqual(ROWS_SHOWN_MAX)
      expect(complaints).toEqual([])
    })
  }

  test('a long list keeps its rows, scroll position and focus when a person returns to it', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(screen())
    await scrollTo(console, ROWS - 340)
    const row = rowOf(page, ROWS - 340)
    const before = (await row.boundingBox())!.y
    await row.getByRole('link').click()
    await page.getByRole('link', { name: '← Webhooks' }).waitFor()
    await waitFor('the top of the delivery', async () => (await page.evaluate('scrollY')) === 0)
    await page.goBack()
    await row.waitFor()
    await waitFor(
      'the place',
      async () => Math.abs(((await row.boundingBox())?.y ?? 0) - before) < 60,
    )
    await waitFor('the focus', () =>
      row.evaluate((element: any) => element.contains(element.ownerDocument.activeElement)),
    )
    // Like a list, every other console screen keeps its scroll position after Back, although its content loads later.
    const { body } = await agent.post('/v0/messages/send', {
      to: ['a@b.example'],
      subject: 'Long',
      text: 'A line.\n'.repeat(300),
    })
    await console.open(`projects/${agent.project.id}/inbox/${body.threadId}`)
    await page.mouse.wheel(0, 2_000)
    await waitFor('the scroll', async () => (await page.evaluate<number>('scrollY')) > 1_500)
    const top = await page.evaluate<number>('scrollY')
    await page.evaluate("location.hash = '#/projects'")
    await page.getByRole('table', { name: 'Projects' }).waitFor()
    await page.goBack()
    await waitFor(
      'the place in the thread',
      async () => Math.abs((await page.evaluate<number>('scrollY')) - top) < 5,
    )
    // A new visit of the list begins at the top of the list.
    await console.open('projects')
    await console.open(screen())
    expect(await page.evaluate<number>('scrollY')).toBe(0)
  })

  test('while the service is unreachable, a long list sends only a few requests, and loads its rows when the service is back', async () => {
    await using console = await openConsole(browser, service)
    const { page, requests } = console
    await console.open(screen())
    await rowOf(page, ROWS).waitFor()
    await page.route('**/deliveries?**', (route) => route.abort())
    await page.mouse.wheel(0, 20_000)
    await page.getByText('What is shown stays; it may be old.').waitFor()
    const before = requests.length
    await Bun.sleep(3_000)
    expect(requests.length - before).toBeLessThan(20)
    await page.unroute('**/deliveries?**')
    await scrollTo(console, ROWS - 340)
  })

  test('while the database is unreachable, a long list keeps its rows, and loads the next rows when the database is back', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(screen())
    await rowOf(page, ROWS).waitFor()
    const body = { error: 'unavailable', message: 'The service is temporarily unavailable' }
    const later = '**/deliveries?**pageToken=**'
    await page.route(later, (route) => route.fulfill({ status: 503, json: body }))
    const answered = page.waitForResponse(later)
    await page.mouse.wheel(0, 20_000)
    await (await answered).finished()
    await drawn(page)
    expect(await page.getByText(body.message).count()).toBe(0)
    expect(await urls(page)).not.toEqual([])
    await page.unroute(later)
    await scrollTo(console, ROWS - 340)
  })

  test('a long list shows new rows at the top, but keeps the scroll position of a person who reads further down', async () => {
    const other = await service.newAgent()
    const webhookId = await addDeliveries(service, other, { count: 160 })
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${other.project.id}/webhooks`)
    await scrollTo(console, 40)
    const insert = (n: number) =>
      service.database.pool.query(
        `insert into webhook_deliveries (id, project_id, webhook_id, event, idempotency_key, url, body)
         values ($1, $2, $3, 'message.received', $1, $4, '')`,
        [`whd_late${n}`, other.project.id, webhookId, `https://hooks.example.com/event-${n}/`],
      )
    await insert(161)
    await waitFor('the top', async () => {
      await page.mouse.wheel(0, -3_000)
      return (await page.evaluate('scrollY')) === 0
    })
    await rowOf(page, 161).waitFor()
    await insert(162)
    await rowOf(page, 162).waitFor()
    await scrollTo(console, 1)
    const numbers = (await urls(page)).map(numberOf)
    expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! - at))
  })
})

describe.skipIf(!hasBrowser)('a person filters a list of the console', () => {
  test('the filters of a list also find rows of later pages, are part of the URL, and are undone by the Back button', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(screen())
    await page.getByLabel('State').selectOption('failed')
    await waitFor('the one that failed', async () => {
      const shown = await urls(page)
      return shown.length === 1 && numberOf(shown[0]!) === 7
    })
    expect(new URL(page.url()).hash).toEndWith('webhooks?status=failed')
    await page.getByText('100 % of 1 failed').waitFor()
    await page.reload()
    await rowOf(page, 7).waitFor()
    expect(await page.getByLabel('State').inputValue()).toBe('failed')
    await page.getByRole('searchbox').fill('nothing-like-this')
    await page.keyboard.press('Enter')
    await page.getByText('Nothing matches these filters.').waitFor()
    await page.goBack()
    await rowOf(page, 7).waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await rowOf(page, ROWS).waitFor()
    expect(new URL(page.url()).hash).toEndWith('webhooks')
    await page.getByLabel('Order').selectOption('oldest')
    await rowOf(page, 1).waitFor()
    expect(numberOf((await urls(page))[0]!)).toBe(1)
  })

  test('the counts above a list always match the last chosen filter, even if the response for an earlier filter arrives later', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    let arrive = () => {}
    const held = new Promise<void>((resolve) => {
      arrive = resolve
    })
    await page.route('**/stats?*status=delivered*', async (route) => {
      await held
      await route.continue()
    })
    await console.open(screen())
    await page.getByText('640 deliveries').waitFor()
    await page.getByLabel('State').selectOption('delivered')
    await page.getByLabel('State').selectOption('failed')
    const counts = page.getByRole('status').filter({ hasText: /deliver/ })
    await page.getByText('1 delivery: 100 % of 1 failed').waitFor()
    const answered = page.waitForResponse('**/stats?*status=delivered*')
    arrive()
    await (await answered).finished()
    await drawn(page)
    expect(await counts.first().textContent()).toStartWith('1 delivery:')
  })

  test('the date filters of a list use the days of the person’s time zone', async () => {
    const { pool } = service.database
    const other = await service.newAgent()
    const webhookId = await addDeliveries(service, other, { count: 3 })
    // Only the second message is on 11 January in the time zone of Auckland (UTC+13), so the filter must find only this
    // message.
    for (const [n, at] of [
      [1, '2026-01-10T10:59:59Z'],
      [2, '2026-01-10T11:00:00Z'],
      [3, '2026-01-11T11:00:00Z'],
    ]) {
      await pool.query(
        'update webhook_deliveries set created_at = $1 where webhook_id = $2 and url like $3',
        [at, webhookId, `%/event-${n}/`],
      )
    }
    await using console = await openConsole(browser, service, { timeZone: 'Pacific/Auckland' })
    const { page } = console
    await page.getByText('Times: Pacific/Auckland').waitFor()
    await console.open(
      `projects/${other.project.id}/webhooks?since=2026-01-11&until=2026-01-11&unknown=1`,
    )
    expect((await urls(page)).map(numberOf)).toEqual([2])
    expect(await page.getByLabel('Since').inputValue()).toBe('2026-01-11')
  })

  test('every list of the console has filters', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    const project = `projects/${agent.project.id}`
    await agent.post('/v0/messages/send', { to: ['a@b.example'], subject: 'Tea', text: 'x' })
    await agent.put('/v0/vault/harbour', { type: 'CUSTOM', data: { a: '1' } })
    for (const [path, field, value, shown, hidden] of [
      ['projects', 'Search name or address', agent.address, agent.address, 'No projects yet'],
      [`${project}/outgoing`, 'Search mail', 'tea', 'Tea', 'Nothing found'],
      [`${project}/vault`, 'Search names', 'HARB', 'harbour', 'Nothing found'],
      [`${project}/activity`, 'Search action, subject or person', 'harb', 'vault.put', 'x'],
      [`${project}/inbox`, 'Search mail', 'tea', 'Tea', 'Nothing found'],
      ['organization', 'Search action, subject or person', 'session', 'session.start', 'x'],
    ] as const) {
      await console.open(path)
      await page.getByRole('searchbox', { name: field }).fill(value)
      await page.keyboard.press('Enter')
      await page.locator('main').getByText(shown).first().waitFor()
      expect([path, await page.getByText(hidden, { exact: true }).count()]).toEqual([path, 0])
      await page.getByRole('searchbox', { name: field }).fill('no such thing')
      await page.keyboard.press('Enter')
      await page.getByText('Nothing found').waitFor()
    }
    await console.open('jobs/delayed?task=none')
    await page.getByText('Nothing found').waitFor()
  })
})
