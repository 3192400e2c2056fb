/** Tests the console screens for approvals, and the approval page behind the link in a notification mail. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { judge } from '../../../support/console/axe.ts'
import { hasBrowser, openConsole, settled, startBrowser } from '../../../support/console/browser.ts'
import { heldAgent, heldPath, requestOf } from '../../../support/mail/held.ts'
import { sendMail, sunkAt, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
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

    test('if an owner changes only the subject of a mail, the text keeps its line ends and the HTML part stays', async () => {
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

    test('if the connection breaks while an owner loads a held mail, the mail appears after the next load and can be approved', async () => {
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

    test('an owner rejects a mail with a reason, and makes outgoing mail wait for approval', async () => {
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
  test('an operator cancels a scheduled mail', async () => {
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

/** Returns the approval link in the notification mail about a held message. */
async function linkOf(agent: Agent, messageId: string): Promise<string> {
  const { approvalId } = await requestOf(service, agent, messageId)
  const notice = await waitFor('the notification', () =>
    sink.mails.find((mail) => mail.email.messageId?.startsWith(`<${approvalId}.`)),
  )
  expect([notice.from, notice.to]).toEqual(['', [OWNER]])
  const [path] = /\/approve\/[\w-]{43}/.exec(notice.email.text!)!
  return service.url + path
}

const noticed = (policy = 'approve') =>
  heldAgent(service, { sendPolicy: policy, approverEmail: OWNER })
/**
 * Reads all approval pages, beginning at an approval link. @returns the seal (the value of the form field `seen`) of
 * the last page.
 */
async function sealOf(link: string): Promise<string> {
  for (let path = ''; ; ) {
    const html = await (await fetch(link + path)).text()
    const next = /href="(\?page=\d+&amp;seen=[\w-]+)"/.exec(html)?.[1]
    if (next === undefined) return /name="seen" value="([\w-]+)"/.exec(html)![1]!
    path = next.replace('&amp;', '&')
  }
}

const decideBy = (link: string, fields: Record<string, string>) =>
  fetch(link, { method: 'POST', body: new URLSearchParams(fields) })

describe('the link in a notification mail opens the approval page', () => {
  test('mail scanners may open an approval link any number of times, but its form decides about the mail only once', async () => {
    const agent = await noticed()
    const { messageId } = await sendMail(agent, letter('Scanned'))
    const link = await linkOf(agent, messageId)
    for (const method of ['GET', 'HEAD', 'GET', 'OPTIONS'] as const) {
      const { status } = await fetch(link, { method })
      expect(status).toBe(method === 'OPTIONS' ? 405 : 200)
    }
    const page = await fetch(link)
    const html = await page.text()
    expect(html.replace(/<\/?mark[^>]*>/g, '')).toContain(
      'Shall I order? &lt;img src=x onerror=alert(1)&gt;',
    )
    expect(html).not.toContain('<img src=x')
    expect(html).not.toContain('<script')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    const held = await requestOf(service, agent, messageId)
    expect(held.state).toBe('waiting')
    expect(html).toContain(held.sha256)

    const seen = await sealOf(link)
    const other = await decideBy(link, { decision: 'approve', sha256: '0'.repeat(64) })
    expect([other.status, (await other.text()).includes('has changed since')]).toEqual([409, true])
    const ends = await Promise.all([
      decideBy(link, { decision: 'approve', sha256: held.sha256, seen }),
      decideBy(link, { decision: 'reject', sha256: held.sha256 }),
    ])
    expect(ends.map(({ status }) => status)).toEqual([200, 200])
    const decided = await requestOf(service, agent, messageId)
    expect([decided.decidedBy, ['approved', 'rejected'].includes(decided.state)]).toEqual([
      `link:${OWNER}`,
      true,
    ])
    const said = decided.state === 'approved' ? '<h1>Approved</h1>' : '<h1>Rejected</h1>'
    for (const end of ends) expect(await end.text()).toContain(said)
    expect(await (await fetch(link)).text()).toContain(said)
    await untilStatus(agent, messageId, decided.state === 'approved' ? 'sent' : 'rejected')
  })

  test('the approval form asks whether later mail to the same recipients needs an approval, and the choice holds', async () => {
    for (const trusted of [true, false]) {
      const agent = await noticed('approve-new')
      const to = `${trusted ? 'known' : 'new'}@example.com`
      const { messageId } = await sendMail(agent, { ...letter('First'), to: [to] })
      const link = await linkOf(agent, messageId)
      const html = await (await fetch(link)).text()
      expect(html).toContain('name="trust" value="recipients" checked')
      const { sha256 } = await requestOf(service, agent, messageId)
      const fields = { decision: 'approve', sha256, seen: await sealOf(link) }
      await decideBy(link, trusted ? { ...fields, trust: 'recipients' } : fields)
      await untilStatus(agent, messageId, 'sent')
      const later = await sendMail(agent, { ...letter('Later'), to: [to] })
      await untilStatus(agent, later.messageId, trusted ? 'sent' : 'held')
    }
  })

  test('the approval form rejects a mail with a reason, and an expired, withdrawn or wrong approval link decides nothing', async () => {
    const agent = await noticed()
    const [first, second, third] = [
      await sendMail(agent, letter('One')),
      await sendMail(agent, letter('Two')),
      await sendMail(agent, letter('Three')),
    ]
    const form = { decision: 'reject', sha256: '0'.repeat(64), reason: 'Too dear' }
    await decideBy(await linkOf(agent, first.messageId), form)
    const done = await untilStatus(agent, first.messageId, 'rejected')
    expect(done.deliveryError).toBe('rejected by the owner: Too dear')

    const link = await linkOf(agent, second.messageId)
    const held = await requestOf(service, agent, second.messageId)
    await service.database.pool.query(
      `update approvals set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
      [held.approvalId],
    )
    // The request is late, although the job that ends it has not run yet.
    expect(await (await fetch(link)).text()).toContain('<h1>Expired</h1>')
    const late = await decideBy(link, { decision: 'approve', sha256: held.sha256 })
    expect(await late.text()).toContain('<h1>Expired</h1>')
    await untilStatus(agent, second.messageId, 'expired')

    const withdrawn = await linkOf(agent, third.messageId)
    await agent.post(`${messagePath(third.messageId)}/cancel`)
    expect(await (await decideBy(withdrawn, form)).text()).toContain('<h1>Withdrawn</h1>')

    const wrong = `${service.url}/approve/${'A'.repeat(43)}`
    expect((await fetch(wrong)).status).toBe(404)
    expect((await decideBy(wrong, form)).status).toBe(404)
    expect((await decideBy(withdrawn, { decision: 'maybe', sha256: '' })).status).toBe(400)
    const json = await fetch(withdrawn, { method: 'POST', body: JSON.stringify(form) })
    expect(json.status).toBe(415)
  })

  test('the database does not contain the token of an approval link, and the audit log names the link', async () => {
    const agent = await noticed()
    const { messageId } = await sendMail(agent, letter('Secret'))
    const link = await linkOf(agent, messageId)
    const token = link.slice(-43)
    const { pool } = service.database
    const { rows: tables } = await pool.query(
      `select table_schema || '.' || table_name as name from information_schema.tables
       where table_schema in ('public', 'graphile_worker') and table_type = 'BASE TABLE'`,
    )
    for (const { name } of tables) {
      const { rows } = await pool.query(
        `select count(*)::int as n from ${name} t where t::text like '%' || $1 || '%'`,
        [token],
      )
      expect([name, rows[0].n]).toEqual([name, 0])
    }
    const { sha256 } = await requestOf(service, agent, messageId)
    await decideBy(link, { decision: 'approve', sha256, seen: await sealOf(link) })
    const { rows } = await pool.query(
      `select actor, detail from audit_log where project_id = $1 and action = 'approval.approve'`,
      [agent.project.id],
    )
    expect(rows).toEqual([{ actor: `link:${OWNER}`, detail: `sha256:${sha256}` }])
  })

  test('a notification mail waits while the mail host is unreachable, and is sent once', async () => {
    const agent = await noticed()
    const { messageId } = await sendMail(agent, letter('Patience'))
    await linkOf(agent, messageId)
    const { approvalId } = await requestOf(service, agent, messageId)
    const { pool } = service.database
    await waitFor('the record', async () => {
      const { rows } = await pool.query('select notified_at from approvals where id = $1', [
        approvalId,
      ])
      return rows[0].notified_at !== null
    })
    await pool.query(
      `select graphile_worker.add_job('announce_approval', json_build_object('approvalId', $1::text),
         job_key := 'announce_approval:' || $1)`,
      [approvalId],
    )
    await waitFor('the second run', async () => {
      const { rowCount } = await pool.query(
        `select from graphile_worker.jobs where key = 'announce_approval:' || $1`,
        [approvalId],
      )
      return rowCount === 0
    })
    const notices = sink.mails.filter(({ email }) => email.messageId?.startsWith(`<${approvalId}.`))
    expect(notices).toHaveLength(1)
    const { rows } = await pool.query(
      `select count(*)::int as n from events where project_id = $1 and type = 'message.held'`,
      [agent.project.id],
    )
    expect(rows[0].n).toBe(1)
    expect((await service.platform.get(heldPath(agent, approvalId))).body.state).toBe('waiting')
  })

  test.skipIf(!hasBrowser)(
    'the approval page is accessible, and can be used with the keyboard only',
    async () => {
      for (const width of WIDTHS) {
        const agent = await noticed()
        const { messageId } = await sendMail(agent, letter('By link'))
        const link = await linkOf(agent, messageId)
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
})
