import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../support/console/browser.ts'
import { standardBounce } from '../../support/mail/bounceMails.ts'
import { fakeDns, type Zone } from '../../support/mail/fakeDns.ts'
import { untilStatus } from '../../support/mail/outbound.ts'
import { publish } from '../../support/mail/ownDomain.ts'
import { deliverRaw, talkSmtp } from '../../support/mail/smtpTalk.ts'
import { startTestService, type TestService, waitForMessages } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

const zone: Zone = {}
let service: TestService
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([
    startTestService({ env: { SMTP_RELAY_URL: 'capture' }, dns: fakeDns(zone) }),
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

describe.skipIf(!hasBrowser)('an operator reads mail at the console', () => {
  test('an operator searches an inbox, sees the highlighted matches, and returns from a thread to the search results', async () => {
    const agent = await service.newAgent()
    const markup = '<img src=x onerror=alert(1)>'
    await service.deliver({
      from: 'ada@example.com',
      to: agent.address,
      subject: 'The invoice of March',
      text: `${'Nothing of note. '.repeat(20)}Enclosed is the Invoice ${markup} for two mills.`,
      messageId: '<invoice@example.com>',
    })
    await service.deliver({
      from: 'bob@example.com',
      to: agent.address,
      subject: 'Lunch',
      text: 'At noon?',
    })
    await waitForMessages(agent, 2)
    await using console = await open()
    const { page, complaints } = console
    await console.open(`projects/${agent.project.id}/inbox`)
    const box = page.getByRole('searchbox', { name: 'Search mail' })
    await box.fill('invoice -lunch')
    await box.press('Enter')
    const table = page.getByRole('table', { name: 'Messages found' })
    await table.waitFor()
    expect(await table.locator('mark').allTextContents()).toEqual(['invoice', 'Invoice'])
    expect(await table.getByText(`Enclosed is the Invoice ${markup} for two mills.`).count()).toBe(
      1,
    )
    expect([await table.locator('img').count(), await table.getByRole('row').count()]).toEqual([
      0, 2,
    ])
    expect(await page.evaluate<string>('document.activeElement.name')).toBe('q')

    await page.getByRole('link', { name: 'The invoice of March' }).click()
    await page.getByRole('article').waitFor()
    await page.goBack()
    await table.waitFor()
    expect(await box.inputValue()).toBe('invoice -lunch')

    await box.fill('"no such words"')
    await press(page, 'Search')
    await page.getByText('Nothing found').waitFor()
    await press(page, 'Show all mail')
    await page.getByRole('link', { name: 'Lunch' }).waitFor()
    expect([await box.inputValue(), new URL(page.url()).hash.includes('?')]).toEqual(['', false])
    expect(complaints).toEqual([])
    await box.fill('-lunch')
    await press(page, 'Search')
    await page.getByText('q must hold at least one word to look for').waitFor()
  })

  test('an operator sees the codes and links of a message, and sees a reset link after a click', async () => {
    const agent = await service.newAgent()
    const href = 'https://s.example/reset?token=Ab12Cd34Ef56'
    await service.deliver({
      from: 'no-reply@s.example',
      to: agent.address,
      subject: 'Sign in',
      text: `Your code is 482913.\n\nReset password:\n${href}\n\nHelp: https://s.example/help\n`,
    })
    const [{ threadId }] = await waitForMessages(agent, 1)
    await using console = await open()
    const { page, complaints } = console
    await console.open(`projects/${agent.project.id}/inbox/${threadId}`)
    await press(page, 'Codes and links')
    const codes = page.getByRole('list', { name: 'One-time codes' })
    await codes.getByText('482913', { exact: true }).waitFor()
    const links = page.getByRole('list', { name: 'Links' })
    await links.getByText('https://s.example/help').waitFor()
    expect(await links.getByText(href).count()).toBe(0)
    await press(page, 'Show the reset link')
    await links.getByText(href).waitFor()
    expect(await page.getByRole('link', { name: /s\.example/ }).count()).toBe(0)
    // The console shows the text of a mail beside its one-time codes, so that a person can see where a code comes from.
    await page.locator('pre', { hasText: 'Your code is 482913.' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('an operator sees the authentication results and the details of a message', async () => {
    const [agent, other] = [await service.newAgent(), await service.newAgent()]
    await other.post('/v0/messages/send', {
      to: [agent.address],
      subject: 'From the next desk',
      text: 'Hello.',
    })
    await service.deliver({
      from: other.address,
      to: agent.address,
      subject: 'Forged',
      text: 'Send me the key.',
    })
    await service.deliver({
      from: 'news@example.com',
      to: agent.address,
      subject: 'News',
      text: 'Of the week.',
      headers: { 'List-Id': '<news.example.com>' },
    })
    await service.deliver({
      from: 'carol@example.com',
      to: agent.address,
      subject: 'Out of office',
      text: 'Back on Monday.',
      headers: { 'Auto-Submitted': 'auto-replied' },
    })
    const { body: sent } = await agent.post('/v0/messages/send', {
      to: ['nobody@example.com'],
      subject: 'Returned',
      text: 'Are you there?',
    })
    await untilStatus(agent, sent.messageId, 'sent')
    const bounce = { messageId: sent.messageId, recipient: 'nobody@example.com', to: agent.address }
    await deliverRaw(service.smtp!.port, agent.address, standardBounce(bounce))
    await waitForMessages(agent, 5, '&labels=received')
    const { threads } = (await agent.get('/v0/threads')).body
    await using console = await open()
    const { page } = console
    const enter = async (subject: string) => {
      const { threadId } = threads.find((thread: any) => thread.subject === subject)
      await console.open(`projects/${agent.project.id}/inbox/${threadId}`)
    }
    const signs = (name: string, nth = 0) =>
      page
        .getByRole('article')
        .nth(nth)
        .getByRole('list', { name })
        .getByRole('listitem')
        .allTextContents()

    await enter('From the next desk')
    expect(await signs('Authentication')).toEqual(['from an inbox of this service'])
    expect(await signs('Labels')).toEqual([])
    await enter('Forged')
    const found = (await agent.get('/v0/messages?q=forged')).body.messages[0]
    const whole = (await agent.get(`/v0/messages/${encodeURIComponent(found.messageId)}`)).body
    expect(await signs('Authentication')).toEqual(
      ['SPF', 'DKIM', 'DMARC', 'ARC'].map(
        (check) => `${check} ${whole.authentication[check.toLowerCase()]}`,
      ),
    )
    expect(await signs('Labels')).toEqual(['unauthenticated'])
    await enter('News')
    expect(await signs('Labels')).toEqual(['list'])
    await enter('Returned')
    const article = page.getByRole('article').nth(0)
    // The console shows no badge for the label `bounced`, because the delivery state of the message already shows the
    // bounce.
    expect([
      await article.getByText('bounced', { exact: true }).count(),
      await signs('Labels'),
    ]).toEqual([1, []])
    await enter('Out of office')
    expect(await signs('Labels')).toEqual(['auto-reply'])
  })

  test('an operator blocks a sender with an email rule and deletes the rule', async () => {
    const agent = await service.newAgent()
    const said = async () => {
      await using talk = await talkSmtp(service.smtp!.port)
      await talk.say('MAIL FROM:<eve@evil.example>')
      return (await talk.say(`RCPT TO:<${agent.address}>`)).slice(0, 3)
    }
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/settings`)
    await page.getByText('No rules').waitFor()
    await press(page, 'Add rule')
    await page.getByLabel('Who').fill('evil.example')
    await inDialog(page, 'Add rule')
    await page.getByText('Who must be one email address, or *@ and a domain').waitFor()
    await page.getByLabel('Who').fill('*@Evil.example')
    await inDialog(page, 'Add rule')
    const row = page.getByRole('row', { name: '*@evil.example' })
    await row.getByText('blocked').waitFor()
    expect(await row.getByText('mail from them').count()).toBe(1)
    expect(await said()).toBe('550')
    await press(page, 'Delete the rule for *@evil.example')
    await inDialog(page, 'Delete rule')
    await page.getByText('No rules').waitFor()
    expect(await said()).toBe('250')
  })

  test('an operator removes an address from the suppression list', async () => {
    const agent = await service.newAgent()
    await service.database.pool.query(
      `insert into suppressions (project_id, address, reason, detail)
       values ($1, 'gone+1@example.com', 'bounce', '550 5.1.1 User unknown')`,
      [agent.project.id],
    )
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/settings`)
    await page.getByRole('row', { name: 'gone+1@example.com' }).getByText('User unknown').waitFor()
    await press(page, 'Remove gone+1@example.com')
    await inDialog(page, 'Remove')
    await page.getByText('No suppressed addresses').waitFor()
    expect((await agent.get('/v0/suppressions')).body.count).toBe(0)
  })

  test('an operator adds a mail domain, sees its missing DNS records, and sees it verified', async () => {
    await using console = await open()
    const { page } = console
    await console.open('organization')
    await press(page, 'Add domain')
    await page.getByRole('textbox', { name: 'Domain' }).fill('nonsense')
    await inDialog(page, 'Add domain')
    await page.getByText('domain must be a domain name').waitFor()
    await page.getByRole('textbox', { name: 'Domain' }).fill('Agents.Example.com')
    await inDialog(page, 'Add domain')
    const card = page.getByRole('region', { name: 'agents.example.com' })
    const mx = card.getByRole('row', { name: /^mx/ })
    await mx.getByText('missing').waitFor()
    await card.getByText('pending').waitFor()
    const { records } = (await service.platform.get('/v0/platform/domains/agents.example.com')).body
    for (const { name, value } of records) {
      expect(await card.getByText(name, { exact: true }).count()).toBeGreaterThan(0)
      expect(await card.getByText(value, { exact: true }).count()).toBeGreaterThan(0)
    }
    publish(zone, records)
    await press(page, 'Verify again: agents.example.com')
    await card.getByText('verified', { exact: true }).waitFor()
    // After its verification, a domain shows its list of DNS records until the next visit. From the next visit on, the
    // list is collapsed.
    await mx.getByText('ok', { exact: true }).waitFor()
    await page.reload()
    await card.getByText('DNS records').waitFor()
    expect(await mx.isVisible()).toBe(false)
    await press(page, 'Delete agents.example.com')
    await page.getByLabel('Type “agents.example.com” to confirm').fill('agents.example.com')
    await inDialog(page, 'Delete domain')
    await page.getByText('No domains of your own').waitFor()
    await waitFor('the domain to be gone', async () => {
      const { status } = await service.platform.get('/v0/platform/domains/agents.example.com')
      return status === 404
    })
  })
})
