import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { startApi } from '../../../../api/http/server.ts'
import type { Services } from '../../../../api/http/services.ts'
import { readHeldRequest } from '../../../../api/mail/approval/held.ts'
import { expireRawMail } from '../../../../sql/mail/messages/expireMail.ts'
import { startPool } from '../../../../workers/queue/pool.ts'
import { outboundRunner } from '../../../../workers/runners/outbound.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { silentLog } from '../../../support/logs.ts'
import { heldAgent, heldPath, requestOf } from '../../../support/mail/held.ts'
import { sendMail, sunkAt, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import {
  type Agent,
  createClient,
  messagePath,
  outboundOptions,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({
    smtp: false,
    env: { SMTP_RELAY_URL: sink.url, DAILY_SEND_LIMIT: '20' },
  })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const sha256 = (text: string) =>
  createHash('sha256').update(Buffer.from(text, 'latin1')).digest('hex')
const copies = (messageId: string) =>
  sink.mails.filter((mail) => mail.email.messageId === messageId)
const approve = (agent: Agent, held: any, more: object = {}) =>
  service.platform.post(`${heldPath(agent, held.approvalId)}/approve`, {
    sha256: held.sha256,
    ...more,
  })
const reject = (agent: Agent, held: any, reason?: string) =>
  service.platform.post(
    `${heldPath(agent, held.approvalId)}/reject`,
    reason === undefined ? {} : { reason },
  )
const events = async (agent: Agent) => {
  const { rows } = await service.database.pool.query(
    'select type, data from events where project_id = $1 order by seq',
    [agent.project.id],
  )
  return rows
}
const audit = async (agent: Agent, action: string) => {
  const { rows } = await service.database.pool.query(
    'select actor, subject, detail, outcome from audit_log where project_id = $1 and action = $2',
    [agent.project.id, action],
  )
  return rows
}

test('the API lists each mail that waits for approval once, in pages, and the last page has no next token even if it is full', async () => {
  const agent = await heldAgent(service)
  const sent: string[] = []
  for (let n = 0; n < 4; n++) sent.push((await sendMail(agent, { subject: `${n}` })).messageId)
  const page = async (query: string) =>
    (await service.platform.get(`${heldPath(agent)}?${query}`)).body
  const first = await page('limit=2')
  const second = await page(`limit=2&pageToken=${first.nextPageToken}`)
  const ids = [...first.held, ...second.held].map((one: any) => one.message.messageId)
  expect(ids).toEqual(sent.toReversed())
  expect([typeof first.nextPageToken, second.nextPageToken]).toEqual(['string', undefined])
})

test('the service stores the bytes of a mail that waits for approval, and sends exactly these bytes once after the approval', async () => {
  const agent = await heldAgent(service)
  const mail = {
    to: ['Ada <ada@example.com>'],
    bcc: ['eve@example.com'],
    subject: 'Offer',
    text: 'Shall I order?',
    html: '<p>Shall I order?</p>',
    attachments: [{ filename: 'a.txt', contentType: 'text/plain', content: btoa('hello') }],
    unsubscribe: { url: 'https://example.com/u' },
  }
  const key = { 'idempotency-key': 'one' }
  const { status, body: sent } = await agent.post('/v0/messages/send', mail, key)
  expect([status, sent.deliveryStatus, sent.labels]).toEqual([201, 'held', ['sent', 'held']])
  expect((await agent.post('/v0/messages/send', mail, key)).body).toEqual(sent)
  const { messageId } = sent
  const { body: seen } = await agent.get(messagePath(messageId))
  expect([seen.deliveryStatus, seen.labels, seen.text]).toEqual([
    'held',
    ['sent', 'held'],
    'Shall I order?',
  ])
  expect((await agent.get('/v0/messages?labels=held')).body.count).toBe(1)

  const held = await requestOf(service, agent, messageId)
  expect(held).toMatchObject({
    kind: 'mail',
    state: 'waiting',
    decidedBy: null,
    message: {
      messageId,
      to: ['ada@example.com'],
      bcc: ['eve@example.com'],
      subject: 'Offer',
      html: '<p>Shall I order?</p>',
      deliveryStatus: 'held',
    },
  })
  expect(Date.parse(held.expiresAt) - Date.parse(held.requestedAt)).toBe(72 * 3_600_000)
  await waitFor('the event', async () => (await events(agent)).length > 0)
  expect((await events(agent)).map(({ type, data }) => [type, data.messageId])).toEqual([
    ['message.held', messageId],
  ])
  const raw = await fetch(`${service.url}${messagePath(messageId)}/raw`, {
    headers: { authorization: `Bearer ${agent.key}` },
  })
  const would = Buffer.from(await raw.arrayBuffer()).toString('latin1')
  expect(sha256(would)).toBe(held.sha256)

  const wrong = await approve(agent, { ...held, sha256: sha256('other') })
  expect([wrong.status, wrong.body.error]).toEqual([409, 'conflict'])
  const twice = await Promise.all([
    approve(agent, held),
    approve(agent, held),
    approve(agent, held),
  ])
  for (const { status, body } of twice) expect([status, body.state]).toEqual([200, 'approved'])
  await waitFor('both copies', () => copies(messageId).length === 2)
  for (const copy of copies(messageId)) expect(copy.raw).toBe(would)
  const done = await untilStatus(agent, messageId, 'sent')
  expect(done.labels).toEqual(['sent'])
  const [entry, ...others] = await audit(agent, 'approval.approve')
  expect(others).toEqual([])
  expect(entry).toEqual({
    actor: service.platform.key.slice(0, 17),
    subject: messageId,
    detail: `sha256:${sha256(copies(messageId)[0]!.raw)}`,
    outcome: 'ok',
  })
  expect((await approve(agent, held)).status).toBe(200)
  expect((await reject(agent, held)).status).toBe(409)
  expect(copies(messageId)).toHaveLength(2)
})

test('a rejection of a mail is final, tells the agent the reason, and gives back the quota that the recipients used', async () => {
  const agent = await heldAgent(service)
  const { messageId } = await sendMail(agent, { to: ['a@example.com', 'b@example.com'] })
  const held = await requestOf(service, agent, messageId)
  const { status, body } = await reject(agent, held, ' The price is wrong. ')
  expect([status, body.state, body.reason]).toEqual([200, 'rejected', 'The price is wrong.'])
  const { body: seen } = await agent.get(messagePath(messageId))
  expect([seen.deliveryStatus, seen.deliveryError, seen.labels]).toEqual([
    'rejected',
    'rejected by the owner: The price is wrong.',
    ['sent'],
  ])
  expect((await events(agent)).map(({ type }) => type)).toContain('message.rejected')
  expect((await approve(agent, held)).status).toBe(409)
  expect((await agent.post(`${messagePath(messageId)}/cancel`)).status).toBe(409)
  const { rows } = await service.database.pool.query(
    'select used from send_quotas where project_id = $1',
    [agent.project.id],
  )
  expect([rows[0].used, copies(messageId)]).toEqual([0, []])
  expect(await audit(agent, 'approval.reject')).toMatchObject([{ detail: 'The price is wrong.' }])
})

test('if a mail is approved and rejected at the same time, exactly one of the two succeeds', async () => {
  const agent = await heldAgent(service)
  for (let n = 0; n < 6; n++) {
    const { messageId } = await sendMail(agent)
    const held = await requestOf(service, agent, messageId)
    const [yes, no, cancelled] = await Promise.all([
      approve(agent, held),
      reject(agent, held),
      agent.post(`${messagePath(messageId)}/cancel`),
    ])
    const won = [yes, no, cancelled].filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    const end = yes.status === 200 ? 'sent' : no.status === 200 ? 'rejected' : 'cancelled'
    await untilStatus(agent, messageId, end)
    expect(copies(messageId)).toHaveLength(end === 'sent' ? 1 : 0)
  }
})

test('an agent withdraws a mail that waits for approval, or deletes the mail', async () => {
  const agent = await heldAgent(service)
  const [first, second] = [await sendMail(agent), await sendMail(agent)]
  const held = await requestOf(service, agent, first.messageId)
  const other = await requestOf(service, agent, second.messageId)
  const { status, body } = await agent.post(`${messagePath(first.messageId)}/cancel`)
  expect([status, body.deliveryStatus]).toEqual([200, 'cancelled'])
  expect((await agent.delete(messagePath(second.messageId))).status).toBe(204)
  for (const one of [held, other]) {
    expect((await approve(agent, one)).status).toBe(409)
    const { body: now } = await service.platform.get(heldPath(agent, one.approvalId))
    expect(now.state).toBe('withdrawn')
  }
  expect((await service.platform.get(heldPath(agent, other.approvalId))).body).toMatchObject({
    message: null,
    sha256: null,
  })
})

test('with the policy approve-new, the first mail to an unknown recipient or domain waits for approval', async () => {
  const agent = await service.newAgent()
  const early = await sendMail(agent, { to: ['Known@example.com'] })
  await untilStatus(agent, early.messageId, 'sent')
  const path = `/v0/platform/projects/${agent.project.id}`
  await service.platform.patch(path, { sendPolicy: 'approve-new' })
  const isHeld = async (...to: string[]) => {
    const sent = await sendMail(agent, { to })
    return sent.deliveryStatus === 'held' ? sent.messageId : null
  }
  expect(await isHeld('known@example.com')).toBeNull()
  const messageId = await isHeld('known@example.com', 'new@example.com')
  expect(messageId).not.toBeNull()
  expect(await isHeld('new@example.com')).not.toBeNull()
  await approve(agent, await requestOf(service, agent, messageId!))
  expect(await isHeld('NEW@example.com')).toBeNull()
  const wide = await isHeld('one@wide.example')
  await approve(agent, await requestOf(service, agent, wide!), { trust: 'domains' })
  expect(await isHeld('two@wide.example')).toBeNull()
  const once = await isHeld('x@once.example')
  await approve(agent, await requestOf(service, agent, once!), { trust: 'none' })
  expect(await isHeld('x@once.example')).not.toBeNull()
  await service.platform.patch(path, { sendPolicy: 'free' })
  expect(await isHeld('anybody@example.org')).toBeNull()
})

test('with the policy approve-new, later mail to the recipients of an approved mail still needs approval, even if the policy is saved or chosen again', async () => {
  const agent = await service.newAgent()
  const path = `/v0/platform/projects/${agent.project.id}`
  const save = (...policies: string[]) =>
    policies.reduce(
      (before, sendPolicy) => before.then(() => service.platform.patch(path, { sendPolicy })),
      Promise.resolve<unknown>(null),
    )
  const send = async (to: string) => {
    const { messageId, deliveryStatus } = await sendMail(agent, { to: [to] })
    return { messageId, isHeld: deliveryStatus === 'held' }
  }
  const approveOnce = async (messageId: string) => {
    await approve(agent, await requestOf(service, agent, messageId), { trust: 'none' })
    await untilStatus(agent, messageId, 'sent')
  }
  await save('approve')
  await approveOnce((await send('all@once.example')).messageId)
  await save('approve-new')
  await approveOnce((await send('new@once.example')).messageId)
  await save('approve-new')
  const isHeld = async () =>
    Promise.all(['all', 'new'].map(async (one) => (await send(`${one}@once.example`)).isHeld))
  expect(await isHeld()).toEqual([true, true])
  await save('free', 'approve', 'approve-new')
  expect(await isHeld()).toEqual([true, true])
  // When the policy changes to approve-new, the recipients of earlier mail that needed no approval count as known, so
  // mail to them needs no approval.
  await save('free')
  const late = await send('late@free.example')
  await untilStatus(agent, (await send('early@free.example')).messageId, 'sent')
  await untilStatus(agent, late.messageId, 'sent')
  await service.database.pool.query(
    `update outbound_recipients set state = 'deferred' where address = 'late@free.example'`,
  )
  await save('approve-new')
  await service.database.pool.query(
    `update outbound_recipients set state = 'sent' where address = 'late@free.example'`,
  )
  await save('approve-new')
  expect((await send('early@free.example')).isHeld).toBe(false)
  expect((await send('late@free.example')).isHeld).toBe(true)
})

test('an approved mail with sendAt waits until this time', async () => {
  const agent = await heldAgent(service)
  const sendAt = new Date(Date.now() + 2_500).toISOString()
  const { messageId } = await sendMail(agent, { sendAt })
  const held = await requestOf(service, agent, messageId)
  await approve(agent, held)
  expect((await agent.get(messagePath(messageId))).body).toMatchObject({
    deliveryStatus: 'scheduled',
    labels: ['sent', 'scheduled'],
  })
  const copy = await sunkAt(sink, messageId)
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(sendAt))
  expect(sha256(copy.raw)).toBe(held.sha256)
})

test('an owner edits a mail that waits for approval, and both the agent and the recipient get the edited mail', async () => {
  const agent = await heldAgent(service)
  const { messageId } = await sendMail(agent, { text: 'Old words', html: '<p>Old words</p>' })
  const held = await requestOf(service, agent, messageId)
  const path = heldPath(agent, held.approvalId)
  const change = { sha256: held.sha256, text: 'New words', subject: 'New subject' }
  const empty = await service.platform.patch(path, { sha256: held.sha256 })
  expect([empty.status, empty.body.message]).toEqual([
    400,
    'subject, text or html must be there to be changed',
  ])
  const ends = await Promise.all([
    service.platform.patch(path, change),
    service.platform.patch(path, { ...change, text: 'Newer words' }),
  ])
  expect(ends.map(({ status }) => status).toSorted()).toEqual([200, 409])
  const { body: edited } = ends.find(({ status }) => status === 200)!
  expect(edited.message).toMatchObject({ subject: 'New subject', html: null, messageId })
  expect(edited.sha256).not.toBe(held.sha256)
  expect((await approve(agent, held)).status).toBe(409)
  expect((await approve(agent, edited)).status).toBe(200)
  const copy = await sunkAt(sink, messageId)
  expect(sha256(copy.raw)).toBe(edited.sha256)
  expect(copy.raw).toContain(edited.message.text)
  expect(copy.raw).not.toContain('Old words')
  const found = await agent.get('/v0/messages?q=Newer OR New')
  expect(found.body.count).toBe(1)
  expect((await service.platform.patch(path, change)).status).toBe(409)
  expect(await audit(agent, 'approval.edit')).toMatchObject([
    { subject: messageId, detail: `sha256:${held.sha256} sha256:${edited.sha256}` },
  ])
})

test('if an owner edits a mail while another owner reads it, the reader never gets the new hash together with the old text', async () => {
  const agent = await heldAgent(service)
  const { messageId } = await sendMail(agent, { text: 'First words' })
  const held = await requestOf(service, agent, messageId)
  const { pool } = service.database
  // The first database query sees the mail as it was before the edit, and all later queries see the edited mail.
  let edited: Promise<{ body: any }> | null = null
  const edit = () =>
    service.platform.patch(heldPath(agent, held.approvalId), {
      sha256: held.sha256,
      text: 'Second words',
    })
  const query = async (statement: any, values: unknown[]) => {
    const text = typeof statement === 'string' ? statement : statement.text
    if (text.includes('from approvals')) return pool.query(statement, values)
    await edited
    const result = await pool.query(statement, values)
    edited ??= edit()
    await edited
    return result
  }
  const read = await readHeldRequest({ pool: { query }, blobs: noBlobs } as unknown as Services, {
    projectId: agent.project.id,
    approvalId: held.approvalId,
  })
  const { body } = await edited!
  expect(body.message.text).toBe('Second words')
  if (read.sha256 === body.sha256) expect(read.message?.text).toBe('Second words')
  else expect(read.sha256).toBe(held.sha256)
})

test('if nobody decides about a mail that waits for approval, the mail expires and is never sent', async () => {
  const agent = await heldAgent(service)
  const { messageId } = await sendMail(agent)
  const held = await requestOf(service, agent, messageId)
  await waitFor('the event', async () => (await events(agent)).length > 0)
  const { pool } = service.database
  await pool.query(
    `update approvals set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
    [held.approvalId],
  )
  const late = await approve(agent, held)
  expect([late.status, late.body.error]).toEqual([410, 'expired'])
  const done = await untilStatus(agent, messageId, 'expired')
  expect(done.deliveryError).toBe('expired: nobody decided in time')
  // An approval call gets the same response before and after the service has recorded the expiry of the approval
  // request.
  const later = await approve(agent, held)
  expect([later.status, later.body.error]).toEqual([410, 'expired'])
  const change = { sha256: held.sha256, text: 'Too late.' }
  const edited = await service.platform.patch(heldPath(agent, held.approvalId), change)
  expect([edited.status, edited.body.error]).toEqual([410, 'expired'])

  const second = await sendMail(agent)
  const other = await requestOf(service, agent, second.messageId)
  const jobKey = `expire_approval:${other.approvalId}`
  await waitFor('the job', async () => {
    const { rows } = await pool.query('select run_at from graphile_worker.jobs where key = $1', [
      jobKey,
    ])
    return rows[0]?.run_at.toISOString() === other.expiresAt
  })
  await pool.query(
    `update approvals set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
    [other.approvalId],
  )
  await pool.query(
    `select graphile_worker.reschedule_jobs(array(select id from graphile_worker.jobs where key = $1), run_at := now())`,
    [jobKey],
  )
  await untilStatus(agent, second.messageId, 'expired')
  expect((await events(agent)).filter(({ type }) => type === 'message.rejected')).toHaveLength(2)
  expect([copies(messageId), copies(second.messageId)]).toEqual([[], []])
})

test('after the retention deletes the bytes of an approved mail, the approval request keeps their hash, and the bytes get status 410', async () => {
  const agent = await heldAgent(service)
  const { messageId } = await sendMail(agent)
  const held = await requestOf(service, agent, messageId)
  await approve(agent, held)
  await untilStatus(agent, messageId, 'sent')
  await service.platform.patch(`/v0/platform/projects/${agent.project.id}`, {
    retention: { rawMail: 1 },
  })
  const { pool } = service.database
  await pool.query(
    `with m as (
       update messages set created_at = created_at - interval '25 hours' where message_id = $1 returning row)
     update outbound_mails set accepted_at = accepted_at - interval '25 hours' from m where message_row = m.row`,
    [messageId],
  )
  expect(await expireRawMail(pool, agent.project.id, new Date())).toBe(1)
  const path = heldPath(agent, held.approvalId)
  const { body } = await service.platform.get(path)
  expect([body.state, body.sha256]).toEqual(['approved', held.sha256])
  for (const answer of [
    await service.platform.get(`${path}/raw`),
    await agent.get(`${messagePath(messageId)}/raw`),
  ]) {
    expect([answer.status, answer.body.error]).toEqual([410, 'expired'])
  }
})

test('the worker refuses to send a mail whose bytes differ from the approved bytes', async () => {
  await using idle = await startTestService({ smtp: false, workers: false })
  const agent = await heldAgent(idle)
  const { messageId } = await sendMail(agent)
  const held = await requestOf(idle, agent, messageId)
  await idle.platform.post(`${heldPath(agent, held.approvalId)}/approve`, { sha256: held.sha256 })
  await idle.database.pool.query(`update raw_mails set bytes = 'Subject: other'`)
  const runner = outboundRunner(outboundOptions(idle.config))
  const pool = await startPool({ ...runner, databaseUrl: idle.database.url }, silentLog)
  try {
    const done = await untilStatus(agent, messageId, 'failed')
    expect(done.deliveryError).toBe('ada@example.com: not the bytes that were approved')
  } finally {
    await pool.stop()
  }
})

test('an approved mail is never sent if the retention (deletion of old mail) has deleted its bytes, and its send job ends', async () => {
  await using idle = await startTestService({ smtp: false, workers: false })
  const agent = await heldAgent(idle)
  const { pool: db, url: databaseUrl } = idle.database
  const { messageId } = await sendMail(agent)
  const held = await requestOf(idle, agent, messageId)
  await idle.platform.post(`${heldPath(agent, held.approvalId)}/approve`, { sha256: held.sha256 })
  await db.query('update messages set raw_id = null, raw_expired = true')
  const jobs = async () =>
    (await db.query(`select last_error from graphile_worker.jobs where key like 'send_mail:%'`))
      .rows
  expect(await jobs()).toHaveLength(1)
  const pool = await startPool(
    { ...outboundRunner(outboundOptions(idle.config)), databaseUrl },
    silentLog,
  )
  try {
    await waitFor('the end of the job', async () => {
      const [job] = await jobs()
      expect(job?.last_error ?? null).toBeNull()
      return job === undefined
    })
  } finally {
    await pool.stop()
  }
})

test('a platform key finds an approval request only in the project of the request, and a project key cannot read approval requests', async () => {
  const [agent, other] = [await heldAgent(service), await heldAgent(service)]
  const { messageId } = await sendMail(agent)
  const held = await requestOf(service, agent, messageId)
  expect((await service.platform.get(heldPath(other, held.approvalId))).status).toBe(404)
  expect((await approve(other, held)).status).toBe(404)
  expect((await reject(other, held)).status).toBe(404)
  const change = { sha256: held.sha256, subject: 'New subject' }
  const edited = await service.platform.patch(heldPath(other, held.approvalId), change)
  expect([edited.status, edited.body.message]).toEqual([404, 'Request not found'])
  expect((await agent.get(heldPath(agent))).status).toBe(403)
  expect((await service.platform.get(`${heldPath(agent)}?state=gone`)).status).toBe(400)
  expect((await service.platform.get('/v0/platform/projects/prj_0/held')).status).toBe(404)
})

test('the fields of a project’s approval policy have limits, and the approver’s email address must not belong to this service', async () => {
  const agent = await service.newAgent()
  const path = `/v0/platform/projects/${agent.project.id}`
  for (const [change, said] of [
    [{ sendPolicy: 'maybe' }, 'sendPolicy must'],
    [{ approvalHours: 0 }, 'approvalHours must'],
    [{ approvalHours: 721 }, 'approvalHours must'],
    [{ approverEmail: 'nobody' }, 'approverEmail must be one email address'],
    [{ approverEmail: agent.address }, 'approverEmail must be outside of this service'],
  ] as const) {
    const { status, body } = await service.platform.patch(path, change)
    expect([status, body.message.startsWith(said)]).toEqual([400, true])
  }
  const set = { sendPolicy: 'approve-new', approverEmail: 'owner@example.com', approvalHours: 24 }
  expect((await service.platform.patch(path, set)).body).toMatchObject(set)
  expect((await service.platform.patch(path, { approverEmail: null })).body).toMatchObject({
    ...set,
    approverEmail: null,
  })
})

test('the address of an approver cannot be an inbox at a former MAIL_DOMAIN, because the inbox’s agent would read the approval links', async () => {
  const agent = await service.newAgent()
  const { config, database, platform } = service
  const moved = startApi({ ...config, mailDomain: 'mail.moved.example' }, database.url, silentLog)
  const client = createClient(`http://127.0.0.1:${moved.port}`, platform.key)
  const path = `/v0/platform/projects/${agent.project.id}`
  for (const approverEmail of [
    agent.address,
    agent.address.replace('@', '+tag@').toUpperCase(),
    agent.address.replace(/^(.*)@/, '"$1"@'),
  ]) {
    const { status, body } = await client.patch(path, { approverEmail })
    expect([status, body.message]).toEqual([
      400,
      expect.stringContaining('approverEmail must be outside of this service'),
    ])
  }
  const other = agent.address.replace('@', '-owner@')
  expect((await client.patch(path, { approverEmail: other })).status).toBe(200)
  await moved.stop()
})

test('a deleted project loses its drafts, approval requests, approval links and known recipients', async () => {
  const agent = await heldAgent(service, {
    sendPolicy: 'approve',
    approverEmail: 'owner@example.com',
  })
  await agent.post('/v0/messages/drafts', { text: 'x' })
  const first = await sendMail(agent)
  await approve(agent, await requestOf(service, agent, first.messageId))
  const { messageId } = await sendMail(agent)
  const held = await requestOf(service, agent, messageId)
  const { pool } = service.database
  const links = async () =>
    (await pool.query('select from approval_links where approval_id = $1', [held.approvalId]))
      .rowCount
  await waitFor('the link', async () => (await links()) === 1)
  await service.platform.delete(`/v0/platform/projects/${agent.project.id}`)
  // A worker deletes the rows of the deleted project some time after the request, so the test waits.
  await waitFor('the purge', async () => {
    for (const table of ['drafts', 'approvals', 'known_recipients', 'messages']) {
      const { rowCount } = await pool.query(`select from ${table} where project_id = $1`, [
        agent.project.id,
      ])
      if (rowCount !== 0) return false
    }
    return (await links()) === 0
  })
  expect((await approve(agent, held)).status).toBe(404)
  expect(copies(messageId)).toEqual([])
})
