/** Tests the console screens for endpoints: which fields a change sends, and who may change an endpoint. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../support/console/browser.ts'
import { signInAs } from '../../support/console/consoleSession.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import '../../support/whole.ts'

const PATH = '/v0/sellers/endpoints'
let service: TestService
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([
    startTestService({ smtp: false, workers: false, env: { ALLOW_PRIVATE_NETWORKS: 'true' } }),
    startBrowser(),
  ])
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const register = async () => {
  const agent = await service.newAgent()
  const urlPattern = 'https://shop.example.com/tea'
  const { body } = await agent.put(PATH, { urlPattern, priceUsdc: '0.01', description: 'Tea' })
  return { agent, urlPattern, one: `${PATH}/${body.endpointId}`, endpointId: body.endpointId }
}

describe.skipIf(!hasBrowser)('an owner manages endpoints at the console', () => {
  test('an owner changes only the edited fields of an endpoint, and sees an error beside the refused field', async () => {
    const { agent, urlPattern, one } = await register()
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/endpoints`)
    await press(page, `Change ${urlPattern}`)
    const dialog = page.getByRole('dialog')
    expect(await dialog.getByLabel('Description').inputValue()).toBe('Tea')
    await agent.patch(one, { description: 'Green tea' })
    await dialog.getByLabel('Price in USDC').fill('free')
    await press(page, 'Save')
    await dialog.getByText(/^Price in USDC must be a decimal USDC string/).waitFor()
    await dialog.getByLabel('Price in USDC').fill('0.03')
    await press(page, 'Save')
    await page.getByText('Saved').waitFor()
    expect((await agent.get(one)).body).toMatchObject({
      priceUsdc: '0.03',
      description: 'Green tea',
    })
    await page.getByRole('row', { name: urlPattern }).getByText('0.03 USDC').waitFor()
  })

  test('if an owner changes the price of an endpoint, its description keeps line breaks and blanks, and the owner can edit the description line by line', async () => {
    const { agent, urlPattern, one } = await register()
    const description = ' Tea\r\nfor one\nor two '
    await agent.patch(one, { description })
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/endpoints`)
    const save = async (label: string, value: string) => {
      await press(page, `Change ${urlPattern}`)
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel(label).fill(value)
      await press(page, 'Save')
      await dialog.waitFor({ state: 'detached' })
      return (await agent.get(one)).body
    }
    expect(await save('Price in USDC', '0.04')).toMatchObject({ priceUsdc: '0.04', description })
    expect(await save('Description', 'Tea\nfor three')).toMatchObject({
      description: 'Tea\nfor three',
    })
  })

  test('an owner finds paused endpoints, and opens the webhook deliveries of an endpoint', async () => {
    const { agent, one, endpointId } = await register()
    await agent.patch(one, { active: false, webhookUrl: 'https://shop.example.com/hook' })
    await agent.put(PATH, { urlPattern: 'https://shop.example.com/rum', priceUsdc: '0.01' })
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/endpoints`)
    expect(await page.locator('tr[data-row]').count()).toBe(2)
    await page.getByLabel('Sale').selectOption('paused')
    await page.locator('tr[data-row]').nth(1).waitFor({ state: 'detached' })
    await page.getByText('paused', { exact: true }).last().waitFor()
    await page.getByRole('link', { name: 'no delivery in 7 days' }).click()
    await page.getByLabel('Receiver').waitFor()
    expect(await page.getByLabel('Receiver').inputValue()).toBe(endpointId)
  })
})

test.skipIf(!hasBrowser)(
  'a viewer cannot change an endpoint, replay a webhook, label a message or write a mail',
  async () => {
    const { agent, one } = await register()
    const viewer = await signInAs(service, 'viewer', [agent.project.id])
    const project = `/projects/${agent.project.id}`
    const answers = [
      await viewer.patch(project + one, { active: false }),
      await viewer.delete(project + one),
      await viewer.post(`${project + one}/verify`),
      await viewer.patch(`${project}/v0/messages/x`, { addLabels: ['a'] }),
      await viewer.delete(`${project}/v0/threads/x`),
      await viewer.post(`${project}/v0/messages/drafts`, { subject: 'x' }),
    ]
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 403))
    expect((await agent.get(one)).body.active).toBe(true)
    expect((await viewer.get(`${project}/v0/messages/drafts`)).status).toBe(200)
  },
)
