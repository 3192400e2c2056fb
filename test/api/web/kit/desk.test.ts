/** Tests keyboard shortcuts, tab titles, copy buttons and a lost connection in the console. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../../support/console/browser.ts'
import { addDeliveries } from '../../../support/console/rows.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/whole.ts'

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
  await addDeliveries(service, agent, { count: 120 })
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

/** Returns the last part of the URL of the list row that has the focus. */
const rowInFocus = (page: Page) =>
  page.evaluate<string | undefined>(
    `/event-\\d+/.exec(document.activeElement.closest('[data-row]')?.textContent ?? '')?.[0]`,
  )

describe.skipIf(!hasBrowser)('a person uses the keyboard shortcuts of the console', () => {
  test('the keyboard shortcuts move through a list across its pages, open a row, and return to the same row', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/webhooks`)
    await page.getByRole('row', { name: 'event-120/' }).waitFor()
    await page.keyboard.press('k')
    expect(await rowInFocus(page)).toBe('event-120')
    for (const key of ['j', 'j', 'k']) await page.keyboard.press(key)
    expect(await rowInFocus(page)).toBe('event-119')
    // Row 60 is not on the first page of the list, so the key j must also load the following page.
    await waitFor('row 60', async () => {
      await page.keyboard.press('j')
      return (await rowInFocus(page)) === 'event-60'
    })
    await page.keyboard.press('Enter')
    await page.getByText('No attempt yet').waitFor()
    await page.goBack()
    await waitFor('the row', async () => (await rowInFocus(page)) === 'event-60')
  })

  test('the shortcut / focuses the search, where typed letters are no shortcuts, and the shortcut ? lists all shortcuts in a dialog', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/webhooks`)
    await page.keyboard.press('/')
    await page.keyboard.type('j/k?x')
    const box = page.getByRole('searchbox')
    expect(await box.inputValue()).toBe('j/k?x')
    await page.keyboard.press('Escape')
    expect(await rowInFocus(page)).toBeUndefined()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('j')
    expect(await rowInFocus(page)).toBeUndefined()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })
})

test.skipIf(!hasBrowser)('each console screen has its own title in the browser tab', async () => {
  await using console = await openConsole(browser, service)
  const { page } = console
  const { body } = await agent.post('/v0/messages/send', {
    to: ['a@b.example'],
    subject: 'A name to find',
    text: 'x',
  })
  const project = `projects/${agent.project.id}`
  const names: string[] = []
  for (const path of [
    ...['', 'projects', 'health', 'reports', 'jobs/failed', 'jobs/delayed', 'apps', 'people'],
    ...['organization', 'you', 'nowhere', `${project}/inbox/${body.threadId}`],
    ...['inbox', 'drafts', 'outgoing', 'approvals', 'vault', 'endpoints', 'payments', 'purse'].map(
      (tab) => `${project}/${tab}`,
    ),
    ...['webhooks', 'activity', 'settings'].map((tab) => `${project}/${tab}`),
  ]) {
    await console.open(path)
    names.push(await page.title())
  }
  expect(names.filter((name) => !name.endsWith(' – Purser'))).toEqual([])
  expect(new Set(names).size).toBe(names.length)
  expect(names).toContain(`A name to find – ${agent.project.name} – Purser`)
  expect(names).toContain(`Webhooks – ${agent.project.name} – Purser`)
})

test.skipIf(!hasBrowser)(
  'a URL with incomplete percent-encoding shows the page "Nothing here"',
  async () => {
    await using console = await openConsole(browser, service)
    const { page, complaints } = console
    await page.goto(`${service.url}/console#/projects/${agent.project.id}/inbox/%3Ca%4`)
    await page.getByRole('heading', { name: 'Nothing here' }).waitFor()
    expect(complaints).toEqual([])
  },
)

test.skipIf(!hasBrowser)(
  'the audit log’s filter offers each part of the service as a choice',
  async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    const offered = () => page.getByLabel('Part').locator('option').allTextContents()
    await console.open('organization')
    expect(await offered()).toEqual(expect.arrayContaining(['passkey', 'company account']))
    await console.open(`projects/${agent.project.id}/activity`)
    expect(await offered()).toContain('oauth grant')
  },
)

test.skipIf(!hasBrowser)(
  'a person confirms a deletion by typing the name exactly as the page shows it',
  async () => {
    const { project } = await service.newAgent()
    const path = `/v0/platform/projects/${project.id}`
    expect((await service.platform.patch(path, { name: ' Two  blanks ' })).status).toBe(200)
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${project.id}/settings`)
    await page.getByRole('button', { name: 'Delete project' }).click()
    await page.getByLabel('to confirm').fill('Two blanks')
    await page.getByRole('button', { name: 'Delete permanently' }).click()
    await page.getByText('is deleted').waitFor()
  },
)

test.skipIf(!hasBrowser)('the copy button of an address copies the whole address', async () => {
  await using console = await openConsole(browser, service)
  const { page, context } = console
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await console.open('projects')
  await page.getByRole('button', { name: `Copy ${agent.address}` }).click()
  await page.getByText('Copied').waitFor()
  expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(agent.address)
})

test.skipIf(!hasBrowser)(
  'the console reports a lost connection, keeps the shown content, and continues when the service is back',
  async () => {
    await using console = await openConsole(browser, service)
    const { page, context } = console
    const list = `projects/${agent.project.id}/webhooks`
    await console.open(list)
    const row = page.getByRole('row', { name: 'event-120/' })
    await row.waitFor()
    await context.setOffline(true)
    await page.getByText(/^Offline since .* What is shown stays; it may be old\.$/).waitFor()
    expect(await row.count()).toBe(1)
    // While the browser is offline, the new screen cannot load, so the old screen stays visible. The new screen opens
    // when the browser is online again.
    await page.getByRole('link', { name: 'Activity' }).click()
    await waitFor('the address', async () => page.url().endsWith('/activity'))
    expect(await row.count()).toBe(1)
    await context.setOffline(false)
    await page.getByText('webhook.create').first().waitFor()
    await page.getByText(/^Offline since/).waitFor({ state: 'detached' })
    expect(await row.count()).toBe(0)
  },
)
