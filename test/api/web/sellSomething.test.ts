/** Tests the form "Sell something" at the console, from entering a URL and a price to a payment with its receipt. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { hasBrowser, openConsole, screenshot, startBrowser } from '../../support/console/browser.ts'
import type { Agent } from '../../support/service.ts'
import {
  type PaidShop,
  startDevnetTill,
  startPaidShop,
} from '../../support/till/headers/paidShop.ts'
import type { TestTill } from '../../support/till/till.ts'
import '../../support/whole.ts'

let till: TestTill
let seller: Agent
let shop: PaidShop
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[till, browser] = await Promise.all([startDevnetTill(), startBrowser()])
  seller = await till.newSeller()
  shop = startPaidShop(till, seller)
})
afterAll(async () => {
  await browser?.close()
  shop?.[Symbol.dispose]()
  await till?.[Symbol.asyncDispose]()
})

test.skipIf(!hasBrowser)(
  'an owner enters a URL and a price, sees the 402 response, buys with test money, and sees the money arrive',
  async () => {
    await using console = await openConsole(browser, till.service, { width: 1440 })
    const { page } = console
    await console.open(`projects/${seller.project.id}/endpoints`)
    await page.getByRole('button', { name: 'Sell something' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('URL', { exact: true }).fill(shop.url)
    await dialog.getByLabel('Price in USDC').fill('0.01')
    await dialog.getByLabel('Webhook URL').fill(new URL('/hook', shop.url).href)
    await dialog.getByRole('button', { name: 'Sell it' }).click()
    await page.getByRole('button', { name: 'I have stored it' }).click()
    await page.getByRole('region', { name: 'The 402' }).waitFor()
    expect(await page.getByRole('region', { name: 'The 402' }).textContent()).toContain('"10000"')
    await page.getByText('Waiting for a buyer').waitFor()
    await page.getByRole('button', { name: 'Copy link' }).waitFor()
    await page.getByRole('button', { name: 'Buy with test money' }).click()
    await page.getByRole('region', { name: 'The answer' }).getByText('fine weather').waitFor()
    const row = page.getByRole('table', { name: 'Payments of this endpoint' }).locator('tr').nth(1)
    for (const text of ['0.01 USDC', 'settled', 'signed', 'delivered']) {
      await row.getByText(text, { exact: true }).waitFor()
    }
    await screenshot(page, 'sell-something')
    expect(shop.paid.length).toBe(1)
    expect(console.complaints).toEqual([])
  },
)
