import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../support/console/browser.ts'
import { fakeDns, type Zone } from '../../support/mail/fakeDns.ts'
import { addVerifiedDomain } from '../../support/mail/ownDomain.ts'
import {
  createClient,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import '../../support/whole.ts'

const zone: Zone = {}
let service: TestService
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([
    startTestService({ dns: fakeDns(zone) }),
    startBrowser(),
  ])
  await service.platform.post('/v0/platform/domains', { domain: 'early.example.com' })
  await addVerifiedDomain(service, zone, 'agents.example.com')
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const inDialog = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
const domainOf = (page: Page) => page.getByRole('combobox', { name: 'Domain' })

/** Opens the console form for a new project. */
async function openForm(name: string, emailName = '') {
  const console = await openConsole(browser, service)
  const { page } = console
  await console.open('projects')
  await page.getByRole('button', { name: 'New project' }).click()
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name)
  await page.getByRole('textbox', { name: 'Inbox address' }).fill(emailName)
  return console
}

/** Returns the error message of a form field. */
const troubleOf = (page: Page, label: string) =>
  page.evaluate<{ focused: boolean; invalid: string | null; told: string[] }>(`(() => {
    const label = [...document.querySelectorAll('dialog label')].find((one) => one.textContent === '${label}')
    const { control } = label
    return {
      focused: document.activeElement === control,
      invalid: control.getAttribute('aria-invalid'),
      told: control.getAttribute('aria-describedby').split(' ')
        .map((id) => document.getElementById(id)).filter((one) => one.role === 'alert').map((one) => one.textContent),
    }
  })()`)

describe.skipIf(!hasBrowser)('an operator chooses the mail domain of a new project', () => {
  test('an operator chooses a verified domain for a project by keyboard, and sees why the other domains cannot be chosen', async () => {
    await using console = await openForm('Borealis', 'borealis')
    const { page, complaints } = console
    expect(await domainOf(page).inputValue()).toBe('mail.test')
    const options = await domainOf(page).evaluate((select: any) =>
      [...select.options].map((option) => [option.textContent, option.disabled]),
    )
    expect(options).toEqual([
      ['@mail.test', false],
      ['@agents.example.com', false],
      ['@early.example.com – not verified yet', true],
    ])
    await domainOf(page).focus()
    // The first press of ArrowDown chooses the last available domain, so a second press changes nothing.
    for (let presses = 0; presses < 2; presses++) await page.keyboard.press('ArrowDown')
    expect(await domainOf(page).inputValue()).toBe('agents.example.com')
    await inDialog(page, 'Create project')
    const key = await page.getByRole('textbox', { name: 'Project key' }).inputValue()
    await press(page, 'I have stored it')

    const address = 'borealis@agents.example.com'
    await page.getByRole('heading', { name: 'Borealis' }).waitFor()
    expect(await page.locator('main > .heading').getByText(address).count()).toBe(1)
    expect(await page.getByRole('definition').filter({ hasText: address }).count()).toBe(1)
    const agent = createClient(service.url, key)
    expect((await agent.get('/v0/whoami')).body.email).toBe(address)
    await service.deliver({
      from: 'ada@example.com',
      to: address,
      subject: 'To your new address',
      text: 'Did it arrive?',
    })
    await waitForMessages(agent as never, 1)
    await page.getByRole('link', { name: 'Inbox', exact: true }).click()
    await page.getByRole('link', { name: 'To your new address' }).waitFor()

    await page.getByRole('link', { name: 'Organization' }).click()
    await press(page, 'Delete agents.example.com')
    await page.getByLabel('Type “agents.example.com” to confirm').fill('agents.example.com')
    await inDialog(page, 'Delete domain')
    await page.getByText('The domain has projects: delete them first').waitFor()
    expect(complaints.filter((text) => !text.includes('409'))).toEqual([])
  })

  test('if the service refuses a field of the form, the operator sees the error beside the field and loses no input', async () => {
    const taken = { emailName: 'taken', emailDomain: 'agents.example.com' }
    expect((await service.platform.post('/v0/platform/projects', taken)).status).toBe(201)
    await addVerifiedDomain(service, zone, 'fleeting.example.com')
    await using console = await openForm('Atlas', 'taken')
    const { page } = console
    await domainOf(page).selectOption('agents.example.com')
    await inDialog(page, 'Create project')
    const refused = 'Inbox address must be free: taken@agents.example.com is taken'
    await page.getByText(refused).waitFor()
    expect(await troubleOf(page, 'Inbox address')).toEqual({
      focused: true,
      invalid: 'true',
      told: [refused],
    })

    // The email name is free at fleeting.example.com, but the test deletes this domain before the request is sent.
    await domainOf(page).selectOption('fleeting.example.com')
    await service.platform.delete('/v0/platform/domains/fleeting.example.com')
    await page.getByRole('textbox', { name: 'Inbox address' }).press('Enter')
    const gone = 'Domain must be a verified domain: fleeting.example.com is none'
    await page.getByText(gone).waitFor()
    expect(await troubleOf(page, 'Domain')).toEqual({
      focused: true,
      invalid: 'true',
      told: [gone],
    })
    expect(await troubleOf(page, 'Inbox address')).toEqual({
      focused: false,
      invalid: null,
      told: [],
    })
    expect(await page.getByText(refused).count()).toBe(0)

    await domainOf(page).selectOption('mail.test')
    await inDialog(page, 'Create project')
    await press(page, 'I have stored it')
    await page.locator('main > .heading').getByText('taken@mail.test').waitFor()
    const { projects } = (await service.platform.get('/v0/platform/projects')).body
    expect(projects[0]).toMatchObject({ name: 'Atlas', emailAddress: 'taken@mail.test' })
  })

  test('an operator sees the verified domains of all result pages, and sees no form if the domains cannot be loaded', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open('projects')
    await page.route('**/v0/platform/domains?*', (route) =>
      route.fulfill({ status: 503, json: { message: 'The service is temporarily unavailable' } }),
    )
    await press(page, 'New project')
    await page.getByText('The service is temporarily unavailable').waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.unroute('**/v0/platform/domains?*')
    await service.database.pool.query(
      `insert into mail_domains (domain, token, dkim_selector, dkim_record, status)
       select 'n' || n || '.example.com', 't', 's', 'r', case when n = 1 then 'failed' else 'verified' end
       from generate_series(1, 120) n`,
    )
    await press(page, 'New project')
    await domainOf(page).waitFor()
    expect([
      await domainOf(page).locator('option:enabled').count(),
      await domainOf(page).locator('option:disabled').allTextContents(),
    ]).toEqual([
      121,
      ['@early.example.com – not verified yet', '@n1.example.com – its verification has failed'],
    ])
  })
})
