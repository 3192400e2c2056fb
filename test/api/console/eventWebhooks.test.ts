import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import type { Browser, Page } from 'playwright-core'
import { EVENT_TYPES } from '../../../shared/events/events.ts'
import { hasBrowser, openConsole, startBrowser } from '../../support/console/browser.ts'
import { type Receiver, startReceiver } from '../../support/events/receiver.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

let service: TestService
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([
    startTestService({
      pools: ['inbound', 'webhooks'],
      env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    }),
    startBrowser(),
  ])
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

const open = () => openConsole(browser, service)
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const inDialog = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click()

const focused = (page: Page) =>
  page.evaluate<string>(
    'document.activeElement.getAttribute("aria-label") ?? document.activeElement.name',
  )

/** Returns the accessible description of a form field (its error message), without its help text. */
const troubleOf = (page: Page, selector: string) =>
  page.evaluate<string[]>(
    `(document.querySelector('dialog ${selector}').getAttribute('aria-describedby') ?? '').split(' ')
      .map((id) => document.getElementById(id)).filter((one) => one?.role === 'alert').map((one) => one.textContent)`,
  )

const register = async (agent: Agent, url: string, events = ['message.received']) => {
  const { status, body } = await agent.post('/v0/webhooks', { url, events })
  expect(status).toBe(201)
  return body as { webhookId: string; secret: string }
}

/**
 * Delivers a mail to the agent's inbox. @returns the signature of the webhook request about the mail, and the expected
 * signature.
 */
async function signatures(agent: Agent, receiver: Receiver, secret: string): Promise<string[]> {
  const before = receiver.requests.length
  await service.deliver({
    from: 'ada@example.com',
    to: agent.address,
    subject: 'Hello',
    text: 'Hello.',
  })
  await waitFor('the webhook', () => receiver.requests.length > before)
  const { headers, body } = receiver.requests.at(-1)!
  return [
    String(headers['x-service-signature']),
    `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
  ]
}

describe.skipIf(!hasBrowser)('an operator manages event webhooks at the console', () => {
  test('an operator registers a webhook for events, sees its secret once, and deletes it', async () => {
    const agent = await service.newAgent()
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/settings`)
    await press(page, 'Register webhook')
    await page.getByLabel('URL').fill('https://hooks.example.com/purser')
    await page.getByRole('checkbox', { name: 'message.received' }).uncheck()
    await inDialog(page, 'Register')
    await page.getByText('Choose at least one event').waitFor()
    for (const event of ['message.bounced', 'payment.settled']) {
      await page.getByRole('checkbox', { name: event }).check()
    }
    await inDialog(page, 'Register')
    const secret = await page.getByRole('textbox', { name: 'Webhook secret' }).inputValue()
    expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/)
    await press(page, 'I have stored it')
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect(await page.content()).not.toContain(secret)
    const { webhooks } = (await agent.get('/v0/webhooks')).body
    expect(webhooks).toMatchObject([
      { url: 'https://hooks.example.com/purser', events: ['message.bounced', 'payment.settled'] },
    ])
    await page
      .getByRole('row', { name: 'hooks.example.com' })
      .getByText('payment.settled')
      .waitFor()
    await press(page, 'Delete the webhook to https://hooks.example.com/purser')
    await inDialog(page, 'Delete webhook')
    await page.getByText('No webhooks').waitFor()
    expect((await agent.get('/v0/webhooks')).body.count).toBe(0)
  })

  test('an operator who changes only the URL of a webhook keeps every event of the webhook', async () => {
    const agent = await service.newAgent()
    const events = ['message.received', 'message.held', 'message.rejected']
    await register(agent, 'https://hooks.example.com/old', events)
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/settings`)
    await press(page, 'Change the webhook to https://hooks.example.com/old')
    const boxes = page.getByRole('dialog').getByRole('checkbox')
    const offered = await boxes.evaluateAll((all: any[]) => all.map(({ value }) => value))
    await page.getByLabel('URL').fill('https://hooks.example.com/new')
    await inDialog(page, 'Save')
    await page.getByText('Saved').waitFor()
    const [found] = (await agent.get('/v0/webhooks')).body.webhooks
    expect(found.url).toBe('https://hooks.example.com/new')
    expect(found.events.toSorted()).toEqual(events.toSorted())
    expect(offered.toSorted()).toEqual(EVENT_TYPES.toSorted())
  })

  test('an operator rotates the secret of a webhook and sees the new secret once', async () => {
    await using receiver = await startReceiver()
    const agent = await service.newAgent()
    const { secret: first } = await register(agent, receiver.url)
    await using console = await open()
    const { page, complaints } = console
    await console.open(`projects/${agent.project.id}/settings`)
    const button = `Rotate secret of the webhook to ${receiver.url}`
    // If the operator cancels the dialog, the old webhook secret stays valid.
    await press(page, button)
    await page.getByRole('dialog').getByText(receiver.url).waitFor()
    await page.keyboard.press('Escape')
    const [before, byFirst] = await signatures(agent, receiver, first)
    expect(before).toBe(byFirst!)

    await page.getByRole('button', { name: button }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate secret' }).focus()
    await page.keyboard.press('Enter')
    const second = await page.getByRole('textbox', { name: 'New webhook secret' }).inputValue()
    expect(second).toMatch(/^whsec_[0-9a-f]{64}$/)
    expect(second).not.toBe(first)
    await press(page, 'I have stored it')
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect(await page.content()).not.toContain(second)
    expect(await focused(page)).toBe(button)
    const [after, bySecond] = await signatures(agent, receiver, second)
    expect(after).toBe(bySecond!)
    await console.open(`projects/${agent.project.id}/activity`)
    await page
      .getByRole('row', { name: 'webhook.rotate_secret' })
      .getByText('ok', { exact: true })
      .waitFor()
    expect(complaints).toEqual([])
  })

  test('an operator sees an error if a webhook was deleted before the operator rotates its secret or changes it', async () => {
    const agent = await service.newAgent()
    const { webhookId } = await register(agent, 'https://gone.example.com/')
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/settings`)
    await page.getByText('https://gone.example.com/').waitFor()
    await agent.delete(`/v0/webhooks/${webhookId}`)
    await press(page, 'Rotate secret of the webhook to https://gone.example.com/')
    await inDialog(page, 'Rotate secret')
    const alert = page.getByRole('dialog').getByRole('alert')
    await alert.getByText('Webhook not found').waitFor()
    expect(await page.getByRole('textbox', { name: 'New webhook secret' }).count()).toBe(0)
    await inDialog(page, 'Cancel')
    await press(page, 'Change the webhook to https://gone.example.com/')
    await inDialog(page, 'Save')
    await alert.getByText('Webhook not found').waitFor()
  })

  test('an operator changes the URL and the events of a webhook, and sees errors beside the wrong field', async () => {
    const agent = await service.newAgent()
    await register(agent, 'https://hooks.example.com/old', ['message.bounced', 'payment.settled'])
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/settings`)
    await press(page, 'Change the webhook to https://hooks.example.com/old')
    const url = page.getByRole('textbox', { name: 'URL' })
    const chosen = () =>
      page
        .getByRole('dialog')
        .getByRole('checkbox', { checked: true })
        .evaluateAll((boxes: any[]) => boxes.map(({ value }) => value))
    expect([await url.inputValue(), await chosen()]).toEqual([
      'https://hooks.example.com/old',
      ['message.bounced', 'payment.settled'],
    ])

    await url.fill('https://me:secret@hooks.example.com/new')
    await inDialog(page, 'Save')
    const refused = 'URL must not hold a user name or password'
    await page.getByText(refused).waitFor()
    expect([await focused(page), await url.getAttribute('aria-invalid')]).toEqual(['url', 'true'])
    expect(await troubleOf(page, 'input[name=url]')).toEqual([refused])

    await url.fill('https://hooks.example.com/new')
    for (const event of ['message.bounced', 'payment.settled']) {
      await page.getByRole('checkbox', { name: event }).uncheck()
    }
    await inDialog(page, 'Save')
    await page.getByText('Choose at least one event').waitFor()
    expect([await focused(page), await url.getAttribute('aria-invalid')]).toEqual(['events', null])
    expect(await troubleOf(page, 'input[name=url]')).toEqual([])
    expect(await troubleOf(page, 'fieldset')).toEqual(['Choose at least one event'])
    expect((await agent.get('/v0/webhooks')).body.webhooks).toMatchObject([
      { url: 'https://hooks.example.com/old', events: ['message.bounced', 'payment.settled'] },
    ])

    // The checkbox of the first event type has the focus, so the test can change it with the keyboard.
    await page.keyboard.press('Space')
    await page.keyboard.press('Enter')
    await page.getByText('Saved').waitFor()
    const changed = 'Change the webhook to https://hooks.example.com/new'
    await waitFor('the focus to be where it was', async () => (await focused(page)) === changed)
    const row = page.getByRole('row', { name: 'hooks.example.com/new' })
    expect(await row.locator('.tags code').allTextContents()).toEqual(['message.received'])
    expect((await agent.get('/v0/webhooks')).body.webhooks).toMatchObject([
      { url: 'https://hooks.example.com/new', events: ['message.received'] },
    ])
  })

  test('an operator’s change of a webhook saves only the edited fields, and keeps a concurrent change of other fields', async () => {
    const agent = await service.newAgent()
    const { webhookId } = await register(agent, 'https://hooks.example.com/first')
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/settings`)
    await press(page, 'Change the webhook to https://hooks.example.com/first')
    await agent.patch(`/v0/webhooks/${webhookId}`, { url: 'https://hooks.example.com/second' })
    await page.getByRole('checkbox', { name: 'message.sent' }).check()
    await inDialog(page, 'Save')
    const row = page.getByRole('row', { name: 'hooks.example.com/second' })
    await row.getByText('message.sent').waitFor()
    expect((await agent.get('/v0/webhooks')).body.webhooks).toMatchObject([
      { url: 'https://hooks.example.com/second', events: ['message.received', 'message.sent'] },
    ])
  })
})
