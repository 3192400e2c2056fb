/**
 * Tests that an operator can sell, store a secret, and write and answer mail on behalf of a project. The audit log
 * names the operator as the actor.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../support/console/browser.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import '../../support/whole.ts'

let service: TestService
let browser: Browser
let agent: Agent
let other: Agent

beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([startTestService({ smtp: false }), startBrowser()])
  agent = await service.newAgent()
  other = await service.newAgent()
  await service.database.pool.query(
    `update projects set pay_to = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC', payments_enabled = true where id = $1`,
    [agent.project.id],
  )
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const fill = (page: Page, label: string, text: string) =>
  page.getByRole('dialog').getByLabel(label, { exact: true }).fill(text)
const logged = async (action: string) => {
  const { body } = await agent.get(`/v0/logs?action=${action}`)
  return body.logs.map(({ actor, outcome, subject }: any) => [
    actor.split(':')[0],
    outcome,
    subject,
  ])
}

describe.skipIf(!hasBrowser)('an operator acts on behalf of a project', () => {
  test('an operator registers an endpoint and sees its webhook secret once', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/endpoints`)
    await press(page, 'Register endpoint')
    await fill(page, 'URL', 'https://shop.example.com/weather')
    await fill(page, 'Price in USDC', 'one')
    await press(page, 'Register')
    await page.getByRole('dialog').getByText(/must/).first().waitFor()
    await fill(page, 'Price in USDC', '0.01')
    await fill(page, 'Webhook URL', 'https://shop.example.com/hook')
    await press(page, 'Register')
    const secret = await page.getByRole('textbox', { name: 'Webhook secret' }).inputValue()
    expect(secret).toStartWith('whsec_')
    await press(page, 'I have stored it')
    await page.getByRole('row', { name: 'https://shop.example.com/weather' }).waitFor()
    const { body } = await agent.get('/v0/sellers/endpoints')
    expect(body.endpoints).toHaveLength(1)
    expect(await logged('endpoint.put')).toContainEqual([
      'console',
      'ok',
      body.endpoints[0].endpointId,
    ])
  })

  test('an operator stores a credential, and the agent reads it', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/vault`)
    await press(page, 'Store credential')
    await fill(page, 'Name', 'work/github')
    await fill(page, 'Username or service', 'ada')
    await fill(page, 'Secret', 'correct horse')
    await press(page, 'Store')
    await page.getByRole('region', { name: 'work/github' }).waitFor()
    const { body } = await agent.get('/v0/vault/work%2Fgithub')
    expect(body).toMatchObject({
      type: 'LOGIN',
      data: { password: 'correct horse' },
      metadata: { username: 'ada' },
    })
    expect(await page.content()).not.toContain('correct horse')
    expect(await logged('vault.put')).toEqual([['console', 'ok', 'work/github']])
  })

  test('an operator writes a message, and answers a message in its thread', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/inbox`)
    await press(page, 'Write')
    await fill(page, 'To', 'not an address')
    await press(page, 'Send')
    await page.getByRole('dialog').getByText(/must/).first().waitFor()
    await fill(page, 'To', other.address)
    await fill(page, 'Subject', 'Offer')
    await fill(page, 'Text', 'Shall I order?')
    await press(page, 'Send')
    const [got] = await waitForMessages(other, 1)
    expect(got).toMatchObject({ subject: 'Offer', from: [agent.address] })
    const { body: question } = await other.post('/v0/messages/send', {
      to: [agent.address],
      subject: 'Question',
      text: 'When?',
    })
    const link = page.getByRole('link', { name: 'Question' })
    await link.click()
    await press(page, 'Answer')
    await fill(page, 'Text', 'On Monday.')
    await press(page, 'Send')
    const messages = await waitForMessages(other, 3)
    const answer = messages.find(({ subject }: any) => subject === 'Re: Question')
    expect(answer).toMatchObject({
      threadId: question.threadId,
      text: expect.stringContaining('On Monday.'),
    })
    // The audit log has no entry for the first message, because the service refused the message for its invalid
    // recipient address.
    const ok = ['console', 'ok', expect.stringContaining('@')]
    expect(await logged('message.send')).toEqual([ok, ok])
  })
})
