/**
 * Tests the payment pages that a seller sees in a browser: the funnel (the counts of each step from an offer to a
 * payment), filters, failures, receipts, webhooks and signed payment headers.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { judge } from '../../support/console/axe.ts'
import { hasBrowser, openConsole, settled, startBrowser } from '../../support/console/browser.ts'
import { signInAs } from '../../support/console/consoleSession.ts'
import { waitForEnd } from '../../support/events/webhooks.ts'
import { type Scene, startScene } from '../../support/scene.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

let scene: Scene
let browser: Browser
let paid: string
let failed: string
beforeAll(async () => {
  if (!hasBrowser) return
  ;[scene, browser] = await Promise.all([startScene(), startBrowser()])
  const { agent, till } = scene
  const { pool } = till.service.database
  paid = await scene.sell()
  failed = await scene.sell()
  await pool.query(
    `update payments set state = 'failed', failure_stage = 'settle', failure_reason = 'insufficient_funds',
       signed_receipt = null, settled_at = null where id = $1`,
    [failed],
  )
  const { deliveryId } = (await agent.get(`/v0/payments/${paid}`)).body.deliveries[0]
  await waitForEnd(agent, deliveryId)
  await pool.query(
    `insert into offer_counts select project_id, id, (now() at time zone 'UTC')::date, 12, 3 from seller_endpoints
     where project_id = $1`,
    [agent.project.id],
  )
})
afterAll(async () => {
  await browser?.close()
  await scene?.[Symbol.asyncDispose]()
})

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const rows = (page: Page) =>
  page.getByRole('table', { name: 'Payments' }).locator('tbody').getByRole('row')

/** Waits until the payment list has one row. */
async function showsOne(page: Page): Promise<void> {
  await rows(page).nth(1).waitFor({ state: 'detached' })
  await rows(page).first().waitFor()
}

describe.skipIf(!hasBrowser)('a seller sees the payments of a project at the console', () => {
  for (const width of [1440, 360]) {
    test(`the console filters the payments of a project, explains their states and shows their details at ${width} px`, async () => {
      const { agent, till, receiver } = scene
      await using console = await openConsole(browser, till.service, { width, bypassCSP: true })
      const { page } = console
      await console.context.addInitScript(axe.source)
      await page.reload()
      const project = `projects/${agent.project.id}`
      await console.open(`${project}/payments`)
      await page.getByText('12 challenges, 1 paid, 1 failed, 3 refused').waitFor()
      await page.getByRole('table', { name: 'From challenge to paid' }).waitFor()
      await page.getByText('The payer has too little USDC.').waitFor()
      expect(await rows(page).count()).toBe(2)
      await judge({ page }, `payments-${width}`)

      await page.getByRole('combobox', { name: 'State' }).selectOption('settled')
      await page.getByRole('textbox', { name: 'Largest amount' }).fill('1')
      await press(page, 'Filter')
      await page.waitForURL(/\?status=settled&maxAmountUsdc=1$/)
      await showsOne(page)
      // After a reload, the page shows the same filtered list of payments, because its URL contains the filters.
      await page.reload()
      await showsOne(page)
      expect(await page.getByRole('combobox', { name: 'State' }).inputValue()).toBe('settled')
      expect(await rows(page).count()).toBe(1)
      await page.getByRole('textbox', { name: 'Least amount' }).fill('0.5')
      await press(page, 'Filter')
      await page.getByText('No payment has all of this.').waitFor()
      await press(page, 'Clear filters')
      await page.waitForURL(/\/payments$/)
      await page.getByRole('link', { name: scene.resource }).click()
      await page.waitForURL(/\?endpointId=se_/)
      await page.getByText('Last 30 days (UTC), one endpoint').waitFor()

      await page.getByRole('table', { name: 'Payments' }).getByText('delivered').first().click()
      await page.getByRole('heading', { name: 'payment.received' }).waitFor()
      await console.open(`${project}/payments`)
      await page.getByRole('link', { name: 'signed' }).click()
      await page.getByRole('region', { name: 'Receipt' }).waitFor()
      const before = receiver.requests.length
      await press(page, 'Send again')
      await page.getByText('Sent again: the same body').waitFor()
      await waitFor('the webhook', async () => receiver.requests.length > before)
      await press(page, 'Show the header that was paid')
      await page.getByText('Rebuilt from the stored authorization').waitFor()
      expect(await page.getByRole('region', { name: 'X-PAYMENT' }).textContent()).toMatch(/^eyJ/)
      await settled(page)
      await judge({ page }, `payment-header-${width}`)
    })
  }

  test('the date filter of payments uses days in the person’s time zone, and includes the last day', async () => {
    const { agent, till } = scene
    const { pool } = till.service.database
    const createdAt = (at: string | null) =>
      pool.query('update payments set created_at = coalesce($2, clock_timestamp()) where id = $1', [
        paid,
        at,
      ])
    await using console = await openConsole(browser, till.service, { timeZone: 'Pacific/Auckland' })
    const { page } = console
    const days = `projects/${agent.project.id}/payments?from=2026-01-11&to=2026-01-11`
    // The two times are the first and the last second of 11 January in Auckland (UTC+13), so the filter must find both
    // payments.
    for (const at of ['2026-01-10T11:00:00Z', '2026-01-11T10:59:59Z']) {
      await createdAt(at)
      await console.open('projects')
      await console.open(days)
      expect([at, await rows(page).count()]).toEqual([at, 1])
    }
    expect(await page.getByLabel('To', { exact: true }).inputValue()).toBe('2026-01-11')
    for (const at of ['2026-01-10T10:59:59Z', '2026-01-11T11:00:00Z']) {
      await createdAt(at)
      await console.open('projects')
      await console.open(days)
      expect([at, await rows(page).count()]).toEqual([at, 0])
    }
    await createdAt(null)
  })

  test('the page of a payment shows which event each webhook delivery reported', async () => {
    const { agent, till, receiver } = scene
    await using console = await openConsole(browser, till.service)
    const { page } = console
    await agent.post('/v0/webhooks', { url: receiver.url, events: ['payment.settled'] })
    const sold = await scene.sell()
    await console.open(`projects/${agent.project.id}/payments/${sold}`)
    const links = page
      .getByRole('table', { name: 'Webhook deliveries of this payment' })
      .getByRole('link')
    await waitFor('the deliveries', async () => (await links.count()) === 2)
    expect((await links.allTextContents()).toSorted()).toEqual([
      'payment.received',
      'payment.settled',
    ])
  })

  test('only an owner can read the signed payment header of a payment, and the audit log names the reader', async () => {
    const { till, agent } = scene
    const path = `/v0/platform/projects/${agent.project.id}/payments/${paid}/header`
    const viewer = await signInAs(till.service, 'viewer', [agent.project.id])
    expect((await viewer.get(path)).status).toBe(403)
    expect((await viewer.get(`/projects/${agent.project.id}/v0/payments/funnel`)).status).toBe(200)
    const owner = await signInAs(till.service, 'owner', [agent.project.id])
    expect((await owner.get(path)).body).toMatchObject({ paymentId: paid, isRebuilt: true })
    const stranger = await signInAs(till.service, 'owner', [])
    expect([403, 404]).toContain((await stranger.get(path)).status)
    const { rows: entries } = await till.service.database.pool.query(
      `select subject, outcome, actor from audit_log where action = 'payment.header' and actor like $1`,
      [`%${owner.email}%`],
    )
    expect(entries).toMatchObject([{ subject: paid, outcome: 'ok' }])
  })
})
