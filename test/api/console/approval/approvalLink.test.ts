/** Tests the approval page behind the link in a notification mail, without a browser. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { changingBefore } from '../../../support/database/beforeStatement.ts'
import { whileFailing } from '../../../support/database/failingStatements.ts'
import {
  approvalLink,
  decideByLink,
  heldAgent,
  heldPath,
  noticeOf,
  readApprovalPages,
  requestOf,
} from '../../../support/mail/held.ts'
import { sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

const OWNER = 'owner@elsewhere.example'

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const letter = (subject: string) => ({
  to: ['ada@example.com'],
  subject,
  text: 'Shall I order? <img src=x onerror=alert(1)>',
  html: '<p>Shall I order?</p>',
})

const noticed = (policy = 'approve') =>
  heldAgent(service, { sendPolicy: policy, approverEmail: OWNER })

async function linkOf(agent: Agent, messageId: string): Promise<string> {
  const { approvalId } = await requestOf(service, agent, messageId)
  const { from, to } = await noticeOf(sink, approvalId)
  expect([from, to]).toEqual(['', [OWNER]])
  return await approvalLink(service, sink, approvalId)
}

test('mail scanners may open an approval link any number of times, but the form on its page can decide about the mail only once', async () => {
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

  const seen = (await readApprovalPages(link)).seen
  const other = await decideByLink(link, { decision: 'approve', sha256: '0'.repeat(64) })
  expect([other.status, (await other.text()).includes('has changed since')]).toEqual([409, true])
  const ends = await Promise.all([
    decideByLink(link, { decision: 'approve', sha256: held.sha256, seen }),
    decideByLink(link, { decision: 'reject', sha256: held.sha256 }),
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

test('the approval form asks whether later mail to the same recipients needs an approval, and the service keeps this choice', async () => {
  for (const trusted of [true, false]) {
    const agent = await noticed('approve-new')
    const to = `${trusted ? 'known' : 'new'}@example.com`
    const { messageId } = await sendMail(agent, { ...letter('First'), to: [to] })
    const link = await linkOf(agent, messageId)
    const html = await (await fetch(link)).text()
    expect(html).toContain('name="trust" value="recipients" checked')
    const { sha256 } = await requestOf(service, agent, messageId)
    const fields = { decision: 'approve', sha256, seen: (await readApprovalPages(link)).seen }
    await decideByLink(link, trusted ? { ...fields, trust: 'recipients' } : fields)
    await untilStatus(agent, messageId, 'sent')
    const later = await sendMail(agent, { ...letter('Later'), to: [to] })
    await untilStatus(agent, later.messageId, trusted ? 'sent' : 'held')
  }
})

test('the approval form rejects a mail with a reason, and an expired, withdrawn or wrong approval link has no effect', async () => {
  const agent = await noticed()
  const [first, second, third] = [
    await sendMail(agent, letter('One')),
    await sendMail(agent, letter('Two')),
    await sendMail(agent, letter('Three')),
  ]
  const form = { decision: 'reject', sha256: '0'.repeat(64), reason: 'Too dear' }
  await decideByLink(await linkOf(agent, first.messageId), form)
  const done = await untilStatus(agent, first.messageId, 'rejected')
  expect(done.deliveryError).toBe('rejected by the owner: Too dear')

  const link = await linkOf(agent, second.messageId)
  const held = await requestOf(service, agent, second.messageId)
  await service.database.pool.query(
    `update approvals set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
    [held.approvalId],
  )
  // The approval request has expired, so the page must say so, although the job that ends the request has not run yet.
  expect(await (await fetch(link)).text()).toContain('<h1>Expired</h1>')
  const late = await decideByLink(link, { decision: 'approve', sha256: held.sha256 })
  expect(await late.text()).toContain('<h1>Expired</h1>')
  await untilStatus(agent, second.messageId, 'expired')

  const withdrawn = await linkOf(agent, third.messageId)
  await agent.post(`${messagePath(third.messageId)}/cancel`)
  expect(await (await decideByLink(withdrawn, form)).text()).toContain('<h1>Withdrawn</h1>')

  const wrong = `${service.url}/approve/${'A'.repeat(43)}`
  expect((await fetch(wrong)).status).toBe(404)
  expect((await decideByLink(wrong, form)).status).toBe(404)
  expect((await decideByLink(withdrawn, { decision: 'maybe', sha256: '' })).status).toBe(400)
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
  await decideByLink(link, {
    decision: 'approve',
    sha256,
    seen: (await readApprovalPages(link)).seen,
  })
  const { rows } = await pool.query(
    `select actor, detail from audit_log where project_id = $1 and action = 'approval.approve'`,
    [agent.project.id],
  )
  expect(rows).toEqual([{ actor: `link:${OWNER}`, detail: `sha256:${sha256}` }])
})

test('if the mail host is unreachable, a notification mail waits and is later sent once', async () => {
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

test('an owner can reject a mail with a reason of 1,000 characters, although the browser sends each line end as two characters', async () => {
  const agent = await noticed()
  const { messageId } = await sendMail(agent, letter('Offer'))
  const link = await linkOf(agent, messageId)
  const { sha256 } = await requestOf(service, agent, messageId)
  const reason = `${'x'.repeat(499)}\n${'y'.repeat(500)}`
  const form = { decision: 'reject', sha256, reason: reason.replace('\n', '\r\n') }
  const end = await decideByLink(link, form)
  expect(end.status).toBe(200)
  const decided = await requestOf(service, agent, messageId)
  expect([decided.state, decided.reason]).toEqual(['rejected', reason])
})

test('the HTML part of a mail is shown by its approval link only while the mail waits for approval', async () => {
  const agent = await noticed()
  const { messageId } = await sendMail(agent, letter('Framed'))
  const link = await linkOf(agent, messageId)
  const { approvalId } = await requestOf(service, agent, messageId)
  const shown = await fetch(`${link}?view=html`)
  expect([shown.status, (await shown.text()).includes('<p>Shall I order?</p>')]).toEqual([
    200,
    true,
  ])
  await service.platform.post(`${heldPath(agent, approvalId)}/reject`, {})
  const gone = await fetch(`${link}?view=html`)
  expect([gone.status, (await gone.text()).includes('This link is not valid')]).toEqual([404, true])
})

test('if a mail that waits for approval has no HTML part, a request for the part gets status 404', async () => {
  const agent = await noticed()
  const { messageId } = await sendMail(agent, { to: ['ada@example.com'], subject: 'P', text: 'x' })
  const link = await linkOf(agent, messageId)
  expect((await fetch(`${link}?view=html`)).status).toBe(404)
})

test('if the owner edits a mail after its approval page was shown, the form of this page does not approve it', async () => {
  const agent = await noticed()
  const { messageId } = await sendMail(agent, letter('Edited'))
  const link = await linkOf(agent, messageId)
  const { approvalId, sha256 } = await requestOf(service, agent, messageId)
  const { seen } = await readApprovalPages(link)
  const path = heldPath(agent, approvalId)
  const edited = await service.platform.patch(path, { sha256, text: 'Pay Mallory.' })
  expect([edited.status, edited.body.sha256 === sha256]).toEqual([200, false])
  const late = await decideByLink(link, { decision: 'approve', sha256, seen })
  const html = await late.text()
  expect(late.status).toBe(409)
  for (const words of ['has changed since', 'Pay Mallory.']) expect(html).toContain(words)
  expect((await requestOf(service, agent, messageId)).state).toBe('waiting')
})

test('if the database fails during a decision by approval link, the page says so, and the link can be used again', async () => {
  const agent = await noticed()
  const { messageId } = await sendMail(agent, letter('Unlucky'))
  const link = await linkOf(agent, messageId)
  const { sha256 } = await requestOf(service, agent, messageId)
  const fields = { decision: 'reject', sha256 }
  const failed = await whileFailing('update approval_links', () => decideByLink(link, fields))
  expect([failed.status, (await failed.text()).includes('temporarily unavailable')]).toEqual([
    503,
    true,
  ])
  expect((await requestOf(service, agent, messageId)).state).toBe('waiting')
  expect((await decideByLink(link, fields)).status).toBe(200)
  await untilStatus(agent, messageId, 'rejected')
})

test('an approval link decides nothing if its owner’s address loses the right to decide while the service handles the form', async () => {
  const agent = await noticed()
  const path = `/v0/platform/projects/${agent.project.id}`
  for (const decision of ['approve', 'reject']) {
    await service.platform.patch(path, { approverEmail: OWNER })
    const { messageId } = await sendMail(agent, letter(`Lost ${decision}`))
    const link = await linkOf(agent, messageId)
    const { sha256 } = await requestOf(service, agent, messageId)
    const { seen } = await readApprovalPages(link)
    const late = await changingBefore(
      'update approval_links',
      () => service.platform.patch(path, { approverEmail: null }),
      () => decideByLink(link, { decision, sha256, seen }),
    )
    expect([late.status, (await late.text()).includes('This link is not valid')]).toEqual([
      404,
      true,
    ])
    expect((await requestOf(service, agent, messageId)).state).toBe('waiting')
  }
})
