/** Tests the console screens for approvals and the approval page in a browser. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { judge } from '../../../support/console/axe.ts'
import { hasBrowser, openConsole, settled, startBrowser } from '../../../support/console/browser.ts'
import { approvalLink, heldAgent, requestOf } from '../../../support/mail/held.ts'
import { sendMail, sunkAt, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/whole.ts'

const WIDTHS = [360, 1440] as const
const OWNER = 'owner@elsewhere.example'

let sink: Sink
let service: TestService
let browser: Browser
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
  if (hasBrowser) browser = await startBrowser()
})
afterAll(async () => {
  await browser?.close()
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const HOSTILE = '<img src=x onerror=alert(1)>'
const letter = (subject: string) => ({
  to: ['ada@example.com'],
  subject,
  text: `Shall I order? ${HOSTILE}`,
  html: '<p>Shall I order?</p>',
})

/** Moves the focus by Tab to a button or link, and presses Enter. */
async function reach(page: Page, role: 'button' | 'link', name: string): Promise<void> {
  const wanted = page.getByRole(role, { name, exact: true })
  await wanted.waitFor()
  for (let presses = 0; presses < 80; presses++) {
    const isThere = (await wanted.and(page.locator(':focus')).count()) === 1
    if (isThere) return await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
  }
  throw new Error(`the focus does not reach ${name}`)
}

describe.skipIf(!hasBrowser)(
  'an owner decides at the console about mail that waits for approval',
  () => {
    for (const width of WIDTHS) {
      test(`an owner reads, edits and approves a mail with the keyboard only at a width of ${width} px`, async () => {
        const agent = await heldAgent(service)
        const { messageId } = await sendMail(agent, letter('Offer'))
        const before = await requestOf(service, agent, messageId)
        await using console = await openConsole(browser, service, { width, bypassCSP: true })
        const { page, complaints } = console
        await page.addInitScript(axe.source)
        await page.reload()
        await console.open(`projects/${agent.project.id}/approvals`)
        await judge(console, `approvals-${width}`)
        await reach(page, 'link', 'Offer')
        await page.getByRole('article', { name: 'The mail' }).waitFor()
        await settled(page)
        await page.getByText(HOSTILE).waitFor()
        await judge(console, `approval-${width}`)
        const overflow = await page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        expect(overflow).toBe(0)

        await reach(page, 'button', 'Edit')
        const text = page.getByRole('textbox', { name: 'Text' })
        expect(await text.inputValue()).toBe(letter('').text)
        await judge(console, `approval-edit-${width}`)
        await text.focus()
        await page.keyboard.press('Control+a')
        await page.keyboard.type('Shall I order two?')
        await reach(page, 'button', 'Save')
        await page.getByText('Shall I order two?').waitFor()
        const after = await requestOf(service, agent, messageId)
        expect(after.sha256).not.toBe(before.sha256)
        await page.getByText(after.sha256).waitFor()

        await reach(page, 'button', 'Approve')
        await page.getByRole('dialog').waitFor()
        await judge(console, `approval-approve-${width}`)
        await page.getByRole('combobox').focus()
        await page.keyboard.press('Tab')
        await page.keyboard.press('Tab')
        await page.keyboard.press('Enter')
        await page.getByText('Nothing waits').waitFor()
        const copy = await sunkAt(sink, messageId)
        expect(copy.raw).toContain('Shall I order two?')
        expect((await requestOf(service, agent, messageId)).decidedBy).toStartWith('console:')
        expect(complaints).toEqual([])
      })
    }

    test('if an owner changes only the subject of a mail, the text keeps its line ends and the HTML part stays unchanged', async () => {
      const agent = await heldAgent(service)
      const text = 'Dear Ada,\r\nyes.\r\n'
      const { messageId } = await sendMail(agent, { ...letter('Ofer'), text })
      const { approvalId } = await requestOf(service, agent, messageId)
      await using console = await openConsole(browser, service)
      const { page } = console
      await console.open(`projects/${agent.project.id}/approvals/${approvalId}`)
      await page.getByRole('button', { name: 'Edit', exact: true }).click()
      await page.getByRole('textbox', { name: 'Subject' }).fill('Offer')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Changed; it still waits').waitFor()
      const { message } = await requestOf(service, agent, messageId)
      expect(message).toMatchObject({ subject: 'Offer', text, html: letter('').html })
    })

    test('if the connection breaks while an owner loads a mail that waits for approval, the owner can load it again and approve it', async () => {
      const agent = await heldAgent(service)
      const { messageId } = await sendMail(agent, letter('Broken line'))
      const { approvalId } = await requestOf(service, agent, messageId)
      await using console = await openConsole(browser, service)
      const { page } = console
      let isBroken = true
      await page.route('**/review?**', (route) => (isBroken ? route.abort() : route.continue()))
      await console.open(`projects/${agent.project.id}/approvals/${approvalId}`)
      await page.getByRole('alert').getByText('The service cannot be reached').waitFor()
      isBroken = false
      await page.getByText(HOSTILE).waitFor()
      await page.getByRole('button', { name: 'Approve', exact: true }).waitFor()
    })

    test('an owner rejects a mail with a reason, and then requires approval for all outgoing mail', async () => {
      const agent = await service.newAgent()
      await using console = await openConsole(browser, service)
      const { page } = console
      await console.open(`projects/${agent.project.id}/settings`)
      await page.getByRole('button', { name: 'Change sending' }).click()
      await page.getByRole('combobox', { name: 'Mail leaves' }).selectOption('approve-new')
      await page.getByRole('textbox', { name: 'Approver' }).fill(OWNER)
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('after approval of the first mail to a recipient').waitFor()
      const { messageId } = await sendMail(agent, letter('Refund'))
      await console.open(`projects/${agent.project.id}/approvals`)
      await page.getByRole('link', { name: 'Refund' }).click()
      await page.getByRole('button', { name: 'Reject', exact: true }).click()
      await page.getByRole('textbox', { name: 'Reason' }).fill('Not this year.')
      await page.getByRole('dialog').getByRole('button', { name: 'Reject', exact: true }).click()
      await page.getByText('Nothing waits').waitFor()
      const done = await untilStatus(agent, messageId, 'rejected')
      expect(done.deliveryError).toBe('rejected by the owner: Not this year.')
    })
  },
)

describe.skipIf(!hasBrowser)('an operator opens the console screen Outgoing', () => {
  test('an operator cancels a scheduled mail, and sees that the mail was cancelled before its time', async () => {
    const agent = await service.newAgent()
    const sendAt = new Date(Date.now() + 3_600_000).toISOString()
    const { messageId } = await sendMail(agent, { ...letter('Later'), sendAt })
    await using console = await openConsole(browser, service)
    await console.open(`projects/${agent.project.id}/outgoing`)
    await console.page.getByText('leaves').waitFor()
    await console.page.getByRole('button', { name: 'Cancel Later' }).click()
    await untilStatus(agent, messageId, 'cancelled')
    await console.page.getByText('cancelled before its time').waitFor()
    expect(console.complaints).toEqual([])
  })
})

test.skipIf(!hasBrowser)(
  'the approval page is accessible, and can be used with the keyboard only',
  async () => {
    for (const width of WIDTHS) {
      const agent = await heldAgent(service, { sendPolicy: 'approve', approverEmail: OWNER })
      const { messageId } = await sendMail(agent, letter('By link'))
      const { approvalId } = await requestOf(service, agent, messageId)
      const link = await approvalLink(service, sink, approvalId)
      const context = await browser.newContext({
        viewport: { width, height: 780 },
        bypassCSP: true,
        reducedMotion: 'reduce',
      })
      await context.addInitScript(axe.source)
      const page = await context.newPage()
      await page.goto(link)
      await judge({ page }, `approval-link-${width}`)
      await reach(page, 'button', 'Approve and send')
      await page.getByRole('heading', { name: 'Approved' }).waitFor()
      await judge({ page }, `approval-link-done-${width}`)
      await untilStatus(agent, messageId, 'sent')
      await context.close()
    }
  },
)
