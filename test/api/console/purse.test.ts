/**
 * Tests in a browser that an owner opens a purse (wallet), creates a mandate (a spending limit), decides about a
 * payment, and stops the purse.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { judge } from '../../support/console/axe.ts'
import { hasBrowser, openConsole, settled, startBrowser } from '../../support/console/browser.ts'
import {
  fundPurse,
  newBuyer,
  ofAgent,
  type Seller,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import type { TestTill } from '../../support/till/till.ts'
import '../../support/whole.ts'

let till: TestTill
let seller: Seller
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[till, browser] = await Promise.all([startPurseTill(), startBrowser()])
  seller = startSeller(till)
})
afterAll(async () => {
  await browser?.close()
  await seller?.[Symbol.asyncDispose]()
  await till?.[Symbol.asyncDispose]()
})

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const inDialog = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click()

describe.skipIf(!hasBrowser)('an owner manages the purse of a project', () => {
  for (const width of [1440, 360]) {
    test(`an owner opens, uses and stops a purse (wallet) at a screen width of ${width} px`, async () => {
      const agent = await till.service.newAgent()
      await using console = await openConsole(browser, till.service, { width, bypassCSP: true })
      const { page } = console
      await console.context.addInitScript(axe.source)
      await page.reload()
      await console.open(`projects/${agent.project.id}/purse`)
      await press(page, 'Open purse')
      await page.getByText('Without a mandate nothing is paid.').waitFor()
      await fundPurse(till, agent.project.id)

      await press(page, 'Give a mandate')
      await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Weather')
      await page.getByRole('textbox', { name: 'Hosts' }).fill(seller.host)
      await page.getByRole('textbox', { name: 'Most for one payment, in USDC' }).fill('0.05')
      await judge({ page }, `purse-mandate-${width}`)
      await inDialog(page, 'Give')
      await page.getByRole('alert').getByText('must be there').waitFor()
      await page.getByRole('textbox', { name: 'Most in a day' }).fill('1')
      await page.getByRole('textbox', { name: 'Ask me above' }).fill('0.005')
      await inDialog(page, 'Give')
      await page.getByRole('button', { name: 'Change Weather' }).waitFor()

      const buyer = ofAgent(till, agent)
      const { body } = await buyer.pay(seller.url, { why: 'The user asked.' })
      expect(body.state).toBe('waiting')
      await press(page, `Decide about ${seller.host}`)
      const dialog = page.getByRole('dialog')
      for (const words of ['0.01 USDC', 'The user asked.', 'The weather']) {
        await dialog.getByText(words).first().waitFor()
      }
      await page.getByRole('radio', { name: 'Pay: only these terms are signed' }).check()
      await inDialog(page, 'Decide')
      const { body: bought } = await agent.get(`/v0/purse/payments/${body.purchaseId}?timeout=40`)
      expect(bought).toMatchObject({ state: 'answered', status: 200 })
      await buyer.settled(body.purchaseId, 'spent')
      await page.getByRole('table', { name: 'Purchases' }).getByText('spent').waitFor()
      await settled(page)
      await judge({ page }, `purse-${width}`)

      await press(page, 'Limits')
      await page.getByLabel('Most that it keeps, in USDC').fill('50')
      await page.getByLabel('Your address').fill(`0x${'4d'.repeat(20)}`)
      await inDialog(page, 'Save')
      await page.getByText('at most 50 USDC').waitFor()
      await page.getByText(/^nobody; from in 24 hr\. on to 0x4d4d/).waitFor()
      await press(page, 'Stop the purse')
      await inDialog(page, 'Stop')
      await page.getByText('The purse is stopped: nothing is signed.').waitFor()
      expect((await buyer.pay(seller.url)).body.reason).toBe('frozen')
      await press(page, 'Let it sign again')
      await page.getByRole('button', { name: 'Stop the purse' }).waitFor()
    })
  }

  test('an owner sees all payments that wait for approval, even if they fill more than one page', async () => {
    const buyer = await newBuyer(till)
    await buyer.giveMandate({ hosts: [seller.host], askAbove: '0.005', maxTotal: '0.1' })
    const first = await buyer.pay(seller.url, { why: 'The first.' })
    expect(first.body.state).toBe('waiting')
    for (let n = 0; n < 5; n++) {
      const bought = await Promise.all(Array.from({ length: 10 }, () => buyer.pay(seller.url)))
      for (const { body } of bought) expect(body.state).toBe('waiting')
    }
    await using console = await openConsole(browser, till.service)
    await console.open(`projects/${buyer.project.id}/purse`)
    const waiting = console.page.getByRole('table', { name: 'Payments that wait for you' })
    await waiting.waitFor()
    expect(await waiting.getByRole('button', { name: `Decide about ${seller.host}` }).count()).toBe(
      51,
    )
  })
})
