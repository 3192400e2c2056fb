/**
 * Tests that a person can use the console by the keyboard alone, on a phone and a desktop, in the light and the dark
 * theme.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import {
  type ConsolePage,
  hasBrowser,
  openConsole,
  screenshot,
  settled,
  startBrowser,
} from '../../support/console/browser.ts'
import { addDeliveries } from '../../support/console/rows.ts'
import { some } from '../../support/database/extent.ts'
import { type Receiver, startReceiver } from '../../support/events/receiver.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

const LOOKS = some([
  { width: 360, dark: true },
  { width: 1440, dark: false },
  { width: 360, dark: false },
  { width: 1440, dark: true },
] as const)

let service: TestService
let browser: Browser
let shop: Receiver
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser, shop] = await Promise.all([
    startTestService({
      pools: ['inbound', 'outbound', 'webhooks'],
      env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    }),
    startBrowser(),
    startReceiver(),
  ])
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
  await shop?.[Symbol.asyncDispose]()
})

/**
 * Presses the Tab key until the control with the given name has the focus. Fails if Tab cannot reach the control.
 */
async function reach(page: Page, role: 'button' | 'link', name: string): Promise<void> {
  const wanted = page.getByRole(role, { name, exact: true }).first()
  await wanted.waitFor()
  const isThere = () =>
    wanted.evaluate((element: any) => element === element.ownerDocument.activeElement)
  for (let steps = 0; steps < 150; steps++) {
    if (await isThere()) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`no way to ${name} with the Tab key`)
}
const enter = async (page: Page, name: string, role: 'button' | 'link' = 'button') => {
  await reach(page, role, name)
  await page.keyboard.press('Enter')
}
/** Presses the Tab key until a field of the dialog has the focus, and types the text into the field. */
async function type(page: Page, label: string, text: string): Promise<void> {
  const field = page.getByRole('dialog').getByLabel(label, { exact: true })
  await field.waitFor()
  for (let steps = 0; steps < 60; steps++) {
    if (await field.evaluate((one: any) => one === one.ownerDocument.activeElement)) {
      await page.keyboard.press('ControlOrMeta+A')
      return await page.keyboard.type(text)
    }
    await page.keyboard.press('Tab')
  }
  throw new Error(`no way to the field ${label}`)
}
const closed = (page: Page) => page.getByRole('dialog').waitFor({ state: 'detached' })

type Walk = {
  console: ConsolePage
  page: Page
  agent: Agent
  shown: (name: string) => Promise<void>
}

const WALKS: Record<string, (walk: Walk) => Promise<void>> = {
  async mail({ console, page, agent, shown }) {
    const other = await service.newAgent()
    await service.deliver({ from: 'ada@example.com', to: agent.address, subject: 'Tea', text: 'x' })
    await waitForMessages(agent, 1)
    await console.open(`projects/${agent.project.id}/inbox`)
    await shown('inbox')
    await enter(page, 'Write')
    await type(page, 'To', other.address)
    await type(page, 'Bcc', 'hidden@mail.test')
    await type(page, 'Subject', 'By hand')
    await type(page, 'Text', 'Hello.')
    await page.getByText(/^Kept as a draft/).waitFor()
    await shown('compose')
    await page.keyboard.press('Escape')
    await shown('leave-draft')
    await enter(page, 'Keep it')
    await closed(page)
    await enter(page, 'Drafts', 'link')
    await settled(page)
    await page.getByRole('table', { name: 'Drafts' }).waitFor()
    await shown('drafts')
    await enter(page, 'Open By hand')
    await type(page, 'Text', 'Hello again.')
    await enter(page, 'Send')
    await closed(page)
    await waitForMessages(other, 1)
    await console.open(`projects/${agent.project.id}/inbox`)
    await page.keyboard.press('/')
    await page.keyboard.type('tea')
    await page.keyboard.press('Enter')
    await page.getByRole('table', { name: 'Messages found' }).waitFor()
    await page.keyboard.press('Escape')
    for (const key of ['j', 'x']) await page.keyboard.press(key)
    await page.getByText('1 message chosen').waitFor()
    await shown('chosen')
    await enter(page, 'Label chosen messages')
    await type(page, 'Add', 'cargo')
    await shown('label')
    await enter(page, 'Label')
    await closed(page)
    expect((await agent.get('/v0/messages?labels=cargo')).body.count).toBe(1)
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('article').waitFor()
    await enter(page, 'Events')
    await page.getByText('No webhook heard of this message.').waitFor()
    await shown('thread')
  },
  async endpoints({ console, page, agent, shown }) {
    await console.open(`projects/${agent.project.id}/endpoints`)
    const url = `http://127.0.0.1:${shop.port}/tea`
    await enter(page, 'Register endpoint')
    await type(page, 'URL', url)
    await type(page, 'Price in USDC', '0.01')
    await enter(page, 'Register')
    await closed(page)
    await page.getByRole('row', { name: url }).waitFor()
    await enter(page, `Change ${url}`)
    await type(page, 'Price in USDC', '0.02')
    await type(page, 'Webhook URL', shop.url)
    await shown('change-endpoint')
    await enter(page, 'Save')
    await enter(page, 'I have stored it')
    await closed(page)
    await page.getByText('0.02 USDC').waitFor()
    await enter(page, `Check ${url}`)
    await page.getByText(/^Checked: /).waitFor()
    await enter(page, `Pause ${url}`)
    await page.getByText('Paused: it gets no new challenges').waitFor()
    await shown('endpoints')
    await enter(page, `Resume ${url}`)
    await page.getByText('It sells again').waitFor()
    await enter(page, `Rotate secret ${url}`)
    await enter(page, 'Rotate secret')
    await enter(page, 'I have stored it')
    await closed(page)
    await enter(page, `Delete ${url}`)
    await enter(page, 'Delete endpoint')
    await page.getByText('Nothing for sale').waitFor()
    const { logs } = (await agent.get('/v0/logs?category=endpoint&order=oldest')).body
    expect(logs.map(({ action }: any) => action)).toEqual(
      ['put', 'update', 'verify', 'update', 'update', 'rotate_secret', 'delete'].map(
        (act) => `endpoint.${act}`,
      ),
    )
  },
  async webhooks({ console, page, agent, shown }) {
    await addDeliveries(service, agent, { count: 60, status: 'exhausted' })
    await service.database.pool.query(
      'update webhook_deliveries set url = $2 where project_id = $1',
      [agent.project.id, shop.url],
    )
    await console.open(`projects/${agent.project.id}/webhooks`)
    await shown('deliveries')
    await enter(page, 'Replay failed…')
    await shown('replay')
    await enter(page, 'Count them')
    await page.getByText('60 deliveries go out again').waitFor()
    await enter(page, 'Replay')
    await page.getByText('60 deliveries sent again').waitFor()
    await closed(page)
    await waitFor('the deliveries', async () => {
      const { body } = await agent.get('/v0/webhooks/deliveries/stats')
      return body.delivered === 60
    })
    await console.open(`projects/${agent.project.id}/settings`)
    await page.getByRole('link', { name: /^0 % of 60 failed/ }).waitFor()
  },
  async overview({ console, page, shown }) {
    await console.open('')
    for (const [range, title] of [
      ['Day', 'The last day, by half hours, in '],
      ['Week', 'The last week, by two hours, in '],
      ['Month', 'The last month, day by day, in '],
    ] as const) {
      await enter(page, range, 'link')
      await page.getByText(title).waitFor()
      await page
        .getByRole('img', { name: new RegExp(`^Mail in, last ${range.toLowerCase()}`) })
        .waitFor()
    }
    await shown('overview-month')
    await console.open('projects')
    await page.keyboard.press('j')
    await page.keyboard.press('?')
    await shown('keys')
    await enter(page, 'Close')
    await closed(page)
  },
}

describe.skipIf(!hasBrowser)('a person works at the console by the keyboard alone', () => {
  for (const { width, dark } of LOOKS) {
    for (const [name, walk] of Object.entries(WALKS)) {
      test(`a person completes the task ${name} with the keyboard at ${width} px in ${dark ? 'dark' : 'light'} colors`, async () => {
        await using console = await openConsole(browser, service, { width, dark })
        const agent = await service.newAgent()
        const { page } = console
        const shown = async (part: string) => {
          const overflow = await page.evaluate<number>(
            'document.documentElement.scrollWidth - document.documentElement.clientWidth',
          )
          expect([part, overflow]).toEqual([part, 0])
          await screenshot(page, `walk-${part}-${width}-${dark ? 'dark' : 'light'}`)
        }
        await walk({ console, page, agent, shown })
        expect(console.complaints).toEqual([])
      })
    }
  }
})
