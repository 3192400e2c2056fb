/**
 * Tests how a person writes mail at the console: drafts, Bcc, files and a later sending time. Also tests the details
 * that the console shows beside a mail.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../../support/console/browser.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/whole.ts'

const DRAFTS = '/v0/messages/drafts'
let service: TestService
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([startTestService(), startBrowser()])
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const inDialog = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
const fill = (page: Page, label: string, text: string) =>
  page.getByRole('dialog').getByLabel(label, { exact: true }).fill(text)
const draftsOf = async (agent: Agent): Promise<any[]> => (await agent.get(DRAFTS)).body.drafts
const kept = (agent: Agent, text: string) =>
  waitFor(`a draft with ${text}`, async () => {
    const [head] = await draftsOf(agent)
    if (head === undefined) return null
    const { body } = await agent.get(`${DRAFTS}/${head.draftId}`)
    return JSON.stringify(body).includes(text) ? body : null
  })
const actionsOf = async (agent: Agent): Promise<string[]> =>
  (await agent.get('/v0/logs')).body.logs.map(({ action }: any) => action)

describe.skipIf(!hasBrowser)('an owner writes mail at the console', () => {
  test('an owner writes a mail with Bcc and a file; the console saves it as a draft during typing, and sends it once', async () => {
    const [agent, shown, hidden] = [
      await service.newAgent(),
      await service.newAgent(),
      await service.newAgent(),
    ]
    await using console = await openConsole(browser, service)
    const { page, complaints } = console
    await console.open(`projects/${agent.project.id}/inbox`)
    await press(page, 'Write')
    await fill(page, 'To', `${shown.address}, half`)
    await fill(page, 'Text', 'As promised.')
    const first = await kept(agent, 'As promised.')
    expect(first.to).toEqual([shown.address])
    await fill(page, 'To', shown.address)
    await fill(page, 'Bcc', hidden.address)
    await fill(page, 'Subject', 'The manifest')
    await page.getByLabel('Attachments').setInputFiles([
      { name: 'manifest.csv', mimeType: 'text/csv', buffer: Buffer.from('ship,cargo\n') },
      { name: 'none.txt', mimeType: 'text/plain', buffer: Buffer.from('x') },
    ])
    await press(page, 'Remove none.txt')
    await waitFor('one file', async () => {
      const { body } = await agent.get(`${DRAFTS}/${first.draftId}`)
      return body.attachments.map(({ filename }: any) => filename).join() === 'manifest.csv'
    })
    await page.getByText(/^Kept as a draft at /).waitFor()
    expect(await draftsOf(agent)).toHaveLength(1)
    await page.getByRole('dialog').getByLabel('Subject').press('Enter')
    await page.getByRole('dialog').getByLabel('Text').press('Control+Enter')
    await page.getByText('Accepted; Outgoing shows its delivery').waitFor()
    const [got] = await waitForMessages(hidden, 1)
    expect(got).toMatchObject({ subject: 'The manifest', to: [shown.address] })
    const { body: whole } = await hidden.get(`/v0/messages/${encodeURIComponent(got.messageId)}`)
    expect(JSON.stringify(whole)).not.toContain(hidden.address.replace('@', '%40'))
    expect(whole.attachments).toMatchObject([{ filename: 'manifest.csv', size: 11 }])
    await waitForMessages(shown, 1)
    expect(await draftsOf(agent)).toEqual([])
    expect(await actionsOf(agent)).toEqual(['message.send', 'draft.create'])
    expect(complaints).toEqual([])
  })

  test('an owner who presses Escape is asked about the draft, keeps it, opens it again and sends it later', async () => {
    const agent = await service.newAgent()
    await using console = await openConsole(browser, service, { timeZone: 'Pacific/Auckland' })
    const { page } = console
    await console.open(`projects/${agent.project.id}/inbox`)
    await press(page, 'Write')
    // The owner has typed no text, so the Escape key closes the dialog without a question.
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await press(page, 'Write')
    await fill(page, 'Subject', 'Spring')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'Keep this draft?' }).waitFor()
    await page.keyboard.press('Escape')
    expect(await page.getByRole('dialog').getByLabel('Subject').inputValue()).toBe('Spring')
    await page.keyboard.press('Escape')
    await press(page, 'Keep it')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect((await draftsOf(agent))[0]).toMatchObject({ subject: 'Spring' })

    await page.getByRole('link', { name: 'Drafts' }).click()
    await press(page, 'Open Spring')
    await fill(page, 'To', 'ada@example.com')
    await fill(page, 'Text', 'It is here.')
    const day = `${new Date().getUTCFullYear() + 1}-01-10`
    await fill(page, 'Send later', `${day}T09:30`)
    await kept(agent, 'It is here.')
    await inDialog(page, 'Send')
    await page.getByText('Accepted; it leaves at its time. Outgoing can cancel it').waitFor()
    await page.getByText('No drafts').waitFor()
    const { body } = await agent.get('/v0/messages?deliveryStatus=scheduled')
    const { body: sent } = await agent.get(
      `/v0/messages/${encodeURIComponent(body.messages[0].messageId)}`,
    )
    // The time zone of Auckland is UTC+13 in January, so the sending time that the person typed is 13 hours ahead of
    // UTC.
    expect(sent.sendAt).toBe(new Date(`${day}T09:30:00+13:00`).toISOString())
  })

  test('if the service cannot save a draft, the owner can continue writing and loses no text', async () => {
    const agent = await service.newAgent()
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/inbox`)
    await page.route('**/v0/messages/drafts', (route) => route.abort())
    await press(page, 'Write')
    await fill(page, 'Text', 'Hard to write twice.')
    await page.keyboard.press('Escape')
    await press(page, 'Keep it')
    await page.getByText('Not kept: The service cannot be reached').first().waitFor()
    await page.getByRole('dialog', { name: 'Keep this draft?' }).waitFor({ state: 'detached' })
    const text = page.getByRole('dialog').getByLabel('Text', { exact: true })
    expect(await text.inputValue()).toBe('Hard to write twice.')
    expect(await page.getByText('The draft is kept').count()).toBe(0)
    await page.unroute('**/v0/messages/drafts')
    await page.keyboard.press('Escape')
    await press(page, 'Keep it')
    await page.getByText('The draft is kept').waitFor()
    await kept(agent, 'Hard to write twice.')

    await page.getByRole('link', { name: 'Drafts' }).click()
    await press(page, 'Open (no subject)')
    await text.waitFor()
    const [{ draftId }] = await draftsOf(agent)
    expect((await agent.delete(`${DRAFTS}/${draftId}`)).status).toBe(204)
    await fill(page, 'Text', 'Written after its end.')
    await page.keyboard.press('Escape')
    await press(page, 'Keep it')
    await kept(agent, 'Written after its end.')
  })

  test('an owner sends a draft whose recipients have a comma in their quoted names', async () => {
    const agent = await service.newAgent()
    const named = ['"Doe, Jane" <jane@example.net>', 'ada@example.com']
    await agent.post(DRAFTS, { to: named, subject: 'Commas', text: 'x' })
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/drafts`)
    await press(page, 'Open Commas')
    await fill(page, 'Cc', '"A \\"b\\", c" <c@example.net>')
    await inDialog(page, 'Send')
    await page.getByText('Accepted; Outgoing shows its delivery').waitFor()
    const { body } = await agent.get('/v0/messages?q=Commas')
    expect(body.messages[0].to).toEqual(['jane@example.net', 'ada@example.com'])
    const { body: whole } = await agent.get(
      `/v0/messages/${encodeURIComponent(body.messages[0].messageId)}`,
    )
    expect(whole.cc).toEqual(['c@example.net'])
  })

  test('if an owner chooses a file and sends the mail immediately, the mail contains the file', async () => {
    const agent = await service.newAgent()
    await using console = await openConsole(browser, service)
    const { page } = console
    // The test reads the file as slowly as from a network drive, so that the person can send the mail before the file
    // is read.
    await page.addInitScript(`{
      const read = File.prototype.arrayBuffer
      File.prototype.arrayBuffer = async function () {
        await new Promise((resolve) => setTimeout(resolve, 1500))
        return await read.call(this)
      }
    }`)
    await page.reload()
    await console.open(`projects/${agent.project.id}/inbox`)
    await press(page, 'Write')
    await fill(page, 'To', 'ada@example.com')
    await fill(page, 'Subject', 'Slow file')
    await page
      .getByLabel('Attachments')
      .setInputFiles([{ name: 'slow.txt', mimeType: 'text/plain', buffer: Buffer.from('slow') }])
    await inDialog(page, 'Send')
    await page.getByText('Accepted; Outgoing shows its delivery').waitFor()
    const { body } = await agent.get('/v0/messages?q=slow')
    const { body: sent } = await agent.get(
      `/v0/messages/${encodeURIComponent(body.messages[0].messageId)}`,
    )
    expect(sent.attachments).toMatchObject([{ filename: 'slow.txt', size: 4 }])
  })

  test('if an owner presses Escape while a mail is being sent, the console does not ask about the draft', async () => {
    const agent = await service.newAgent()
    await using console = await openConsole(browser, service)
    const { page } = console
    let arrive = () => {}
    const held = new Promise<void>((resolve) => {
      arrive = resolve
    })
    await page.route('**/send', async (route) => {
      const response = await route.fetch()
      await held
      await route.fulfill({ response })
    })
    await console.open(`projects/${agent.project.id}/inbox`)
    await press(page, 'Write')
    await fill(page, 'To', 'ada@example.com')
    await fill(page, 'Subject', 'On its way')
    await inDialog(page, 'Send')
    await waitFor('the mail', async () => (await agent.get('/v0/messages?q=way')).body.count === 1)
    await page.keyboard.press('Escape')
    arrive()
    await page.getByText('Accepted; Outgoing shows its delivery').waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  test('if an agent deletes a draft that the owner is writing, the console stores the draft again when the owner keeps it', async () => {
    const agent = await service.newAgent()
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/drafts`)
    await press(page, 'Write')
    await fill(page, 'Text', 'Worth keeping.')
    await page.getByText('Kept as a draft').waitFor()
    const [draft] = await draftsOf(agent)
    await agent.delete(`${DRAFTS}/${draft!.draftId}`)
    await inDialog(page, 'Cancel')
    await press(page, 'Keep it')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await kept(agent, 'Worth keeping.')
  })

  test.each(['Keep it', 'Delete it'])(
    'if the response to a send request is lost, %s finds that the mail was accepted',
    async (way) => {
      const agent = await service.newAgent()
      await using console = await openConsole(browser, service)
      const { page } = console
      await page.route(
        '**/send',
        async (route) => {
          await route.fetch()
          await route.abort()
        },
        { times: 1 },
      )
      await console.open(`projects/${agent.project.id}/inbox`)
      await press(page, 'Write')
      await fill(page, 'To', 'ada@example.com')
      await fill(page, 'Subject', 'Only once')
      await fill(page, 'Text', 'Only once.')
      await inDialog(page, 'Send')
      const count = async () => (await agent.get('/v0/messages?q=once')).body.count
      await waitFor('the mail', async () => (await count()) === 1)
      await inDialog(page, 'Cancel')
      await press(page, way)
      await page.getByText('The mail was accepted before').waitFor()
      expect([await count(), await draftsOf(agent)]).toEqual([1, []])
    },
  )

  test('if the response to a send request is lost and the owner changes the text, the console tells that the mail was accepted', async () => {
    const agent = await service.newAgent()
    await using console = await openConsole(browser, service)
    const { page } = console
    await page.route(
      '**/send',
      async (route) => {
        await route.fetch()
        await route.abort()
      },
      { times: 1 },
    )
    await console.open(`projects/${agent.project.id}/inbox`)
    await press(page, 'Write')
    await fill(page, 'To', 'ada@example.com')
    await fill(page, 'Subject', 'Only once')
    await fill(page, 'Text', 'Onyl once.')
    await inDialog(page, 'Send')
    const count = async () => (await agent.get('/v0/messages?q=once')).body.count
    await waitFor('the mail', async () => (await count()) === 1)
    await page.getByRole('alert').getByText('The service cannot be reached').waitFor()
    await fill(page, 'Text', 'Only once.')
    await inDialog(page, 'Send')
    await page.getByRole('alert').getByText('The mail was accepted before').waitFor()
    await inDialog(page, 'Cancel')
    await press(page, 'Keep it')
    await page.getByText('The mail was accepted before; the changed mail is a draft').waitFor()
    expect((await kept(agent, 'Only once.')).text).toBe('Only once.')
    expect(await count()).toBe(1)
  })

  test('an owner deletes a draft of their own and a draft of the agent', async () => {
    const agent = await service.newAgent()
    await agent.post(DRAFTS, { subject: 'Of the agent', text: 'x' })
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/drafts`)
    await press(page, 'Write')
    await fill(page, 'Text', 'Never mind.')
    await waitFor('two drafts', async () => (await draftsOf(agent)).length === 2)
    await inDialog(page, 'Cancel')
    await press(page, 'Delete it')
    await page.getByText('The draft is deleted').waitFor()
    expect((await draftsOf(agent)).map(({ subject }) => subject)).toEqual(['Of the agent'])
    await page.getByRole('checkbox', { name: 'Choose Of the agent' }).check()
    await press(page, 'Delete chosen drafts')
    await inDialog(page, 'Delete')
    await page.getByText('No drafts').waitFor()
    expect(await draftsOf(agent)).toEqual([])
  })

  test('an owner sees codes, events and the text of attached files beside a mail, which stays visible', async () => {
    const agent = await service.newAgent()
    await agent.post('/v0/webhooks', {
      url: 'https://hooks.example.com/beside',
      events: ['message.received'],
    })
    await service.deliver({
      from: 'no-reply@s.example',
      to: agent.address,
      subject: 'Sign in',
      text: 'Your code is 482913. The list is enclosed.',
      attachments: [{ filename: 'list.csv', content: 'ship,cargo\nAtlas,tea\n' }],
    })
    const [{ threadId }] = await waitForMessages(agent, 1)
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open(`projects/${agent.project.id}/inbox/${threadId}`)
    expect(await page.title()).toStartWith('Sign in – ')
    const letter = page.locator('pre', { hasText: 'The list is enclosed.' })
    const beside = page.getByRole('group', { name: 'Beside the message' })
    await beside.getByRole('button', { name: 'Codes and links' }).click()
    await beside.getByText('482913', { exact: true }).waitFor()
    await beside.getByRole('button', { name: 'Events' }).click()
    const events = beside.getByRole('list', { name: 'Events' })
    await events.getByRole('link', { name: 'message.received' }).waitFor()
    await beside.getByRole('button', { name: 'Text' }).click()
    await beside
      .getByRole('region', { name: 'Text' })
      .getByText(/Atlas.tea/)
      .waitFor()
    expect(await letter.isVisible()).toBe(true)
    const [mail, side] = [(await letter.boundingBox())!, (await events.boundingBox())!]
    expect(side.x).toBeGreaterThan(mail.x + mail.width / 2)
    await beside.getByRole('button', { name: 'Events' }).click()
    expect(await events.count()).toBe(0)
  })

  test('the console always shows the last chosen view of a mail, even if the response for an earlier view arrives later', async () => {
    const agent = await service.newAgent()
    await service.deliver({
      from: 'ada@example.com',
      to: agent.address,
      subject: 'Views',
      text: 'The plain one.',
    })
    const [{ threadId }] = await waitForMessages(agent, 1)
    await using console = await openConsole(browser, service)
    const { page } = console
    let arrive = () => {}
    const held = new Promise<void>((resolve) => {
      arrive = resolve
    })
    await page.route('**/raw', async (route) => {
      await held
      await route.continue()
    })
    await console.open(`projects/${agent.project.id}/inbox/${threadId}`)
    await press(page, 'Raw')
    await press(page, 'Text')
    const answered = page.waitForResponse('**/raw')
    arrive()
    await (await answered).finished()
    // The test waits until no button is disabled, because the console enables the button again as soon as it has handled
    // the response.
    await page.locator('button[aria-disabled="true"]').waitFor({ state: 'detached' })
    expect(await page.getByRole('region', { name: 'Original message' }).count()).toBe(0)
    await page.locator('pre', { hasText: 'The plain one.' }).waitFor()
  })
})
