/**
 * Tests the responses to requests whose object (such as a mail or webhook) changes or disappears between two SQL
 * statements of the same request.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type ConsoleClient, signIn } from '../support/console/consoleSession.ts'
import { changingBefore } from '../support/database/beforeStatement.ts'
import { whileFailing } from '../support/database/failingStatements.ts'
import { heldAgent, heldPath, requestOf } from '../support/mail/held.ts'
import { sendMail } from '../support/mail/outbound.ts'
import { type Agent, messagePath, startTestService, type TestService } from '../support/service.ts'
import '../support/long.ts'

let service: TestService
let console: ConsoleClient
let agent: Agent
const sql = (text: string, ...values: unknown[]) => service.database.pool.query(text, values)
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  console = await signIn(service)
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const projectPath = (owner: Agent) => `/v0/platform/projects/${owner.project.id}`
const endProject = (owner: Agent) => () => service.platform.delete(projectPath(owner))
const PROJECT_LOCK = 'select from projects where id = $1 and deleted_at is null'
const endpoint = {
  urlPattern: 'https://api.example.com/a',
  priceUsdc: '1',
  network: 'base-sepolia',
}

/**
 * Makes an agent's mail that waits for approval. Returns the mail with its approval request, and functions that read
 * its approval page and edit the mail.
 */
async function heldMail(content: object = {}) {
  const owner = await heldAgent(service)
  const { messageId } = await sendMail(owner, content)
  const held = await requestOf(service, owner, messageId)
  const review = () => console.get(`/projects/${owner.project.id}/held/${held.approvalId}/review`)
  const path = heldPath(owner, held.approvalId)
  const edit = (sha256 = held.sha256) => service.platform.patch(path, { sha256, text: 'New' })
  return { owner, messageId, held, path, review, edit }
}

describe('an object that disappears during a request gets the same response as an unknown object', () => {
  test('if a project is deleted during a request, the response is 404', async () => {
    const reader = await service.newAgent()
    const whoami = await changingBefore('find-project ', endProject(reader), () =>
      reader.get('/v0/whoami'),
    )
    expect(whoami).toMatchObject({ status: 404, body: { message: 'Project not found' } })
    const seller = await service.newAgent()
    const put = await changingBefore(PROJECT_LOCK, endProject(seller), () =>
      seller.put('/v0/sellers/endpoints', endpoint),
    )
    expect(put).toMatchObject({ status: 404, body: { message: 'Project not found' } })
  })

  test('if an endpoint is deleted during a request to verify it, the response is 404', async () => {
    const { endpointId } = (await agent.put('/v0/sellers/endpoints', endpoint)).body
    const path = `/v0/sellers/endpoints/${endpointId}`
    const answer = await changingBefore(
      'find-endpoint ',
      () => agent.delete(path),
      () => agent.post(`${path}/verify`),
    )
    expect(answer).toMatchObject({ status: 404, body: { message: 'Endpoint not found' } })
  })

  test('if a credential is deleted during a request to change it, the response is 404', async () => {
    const path = '/v0/vault/short'
    await agent.put(path, { type: 'API_KEY', data: { key: 'k' } })
    const answer = await changingBefore(
      'find-credential ',
      () => agent.delete(path),
      () => agent.patch(path, { reveal: 'owner' }),
    )
    expect(answer.status).toBe(404)
  })

  test('if a webhook delivery is deleted during a request to replay it, the response is 404', async () => {
    const id = 'whd_meanwhile'
    await sql(
      `insert into webhook_deliveries (id, project_id, url, event, body, idempotency_key)
       values ($1, $2, 'https://a.example/', 'message.sent', '{}', 'k')`,
      id,
      agent.project.id,
    )
    const answer = await changingBefore(
      'for update of d',
      () => sql('delete from webhook_deliveries where id = $1', id),
      () => agent.post(`/v0/webhooks/deliveries/${id}/replay`),
    )
    expect(answer.status).toBe(404)
  })

  test('if a health report is deleted during the request that creates it, the response is 404', async () => {
    const answer = await changingBefore(
      'find-health-report ',
      () => sql('delete from health_reports'),
      () => service.platform.post('/v0/platform/health'),
    )
    expect(answer).toMatchObject({
      status: 404,
      body: { message: 'The report was replaced by newer ones' },
    })
  })

  test('if a message or its HTML part is deleted during a request for it, the response is 404', async () => {
    const sender = await service.newAgent()
    const { messageId } = await sendMail(sender, { html: '<b>x</b>' })
    const html = `/projects/${sender.project.id}${messagePath(messageId).replace('/v0', '')}/html`
    expect((await console.get(html)).status).toBe(200)
    const emptied = await changingBefore(
      'find-message-html ',
      () => sql('update messages set html_body = null where message_id = $1', messageId),
      () => console.get(html),
    )
    expect(emptied.status).toBe(404)
    const raw = await changingBefore(
      'find-outbound-content ',
      () => sender.delete(messagePath(messageId)),
      () => sender.get(`${messagePath(messageId)}/raw`),
    )
    expect(raw).toMatchObject({ status: 404, body: { message: 'Message not found' } })
  })
})

test('an event stream ends with 401 if the key lost a scope, or was replaced, before the event reader was open', async () => {
  for (const change of [
    (owner: Agent) => service.platform.patch(projectPath(owner), { removeScopes: ['mail:read'] }),
    (owner: Agent) => service.platform.post(`${projectPath(owner)}/rotate-key`),
  ]) {
    const owner = await service.newAgent()
    const answer = await changingBefore(
      'find-key-scopes ',
      () => change(owner),
      () => owner.get('/v0/events?types=message.received'),
    )
    expect(answer.status).toBe(401)
  }
})

describe('if a mail that waits for approval changes while a person reads or edits it, the service neither shows nor edits the old version', () => {
  const over = { error: 'conflict', message: 'The request no longer waits' }
  const LOCK = 'for no key update of o'

  test('an edit of a mail changes nothing if, before the edit took effect, the mail was rejected or deleted, or its approval request expired', async () => {
    const rejected = await heldMail()
    const reject = () => service.platform.post(`${rejected.path}/reject`, {})
    expect(await changingBefore(LOCK, reject, rejected.edit)).toMatchObject({
      status: 409,
      body: over,
    })
    const deleted = await heldMail()
    const remove = () => deleted.owner.delete(messagePath(deleted.messageId))
    expect(await changingBefore(LOCK, remove, deleted.edit)).toMatchObject({
      status: 409,
      body: over,
    })
    const late = await heldMail()
    const end = () =>
      sql(
        `update approvals set expires_at = clock_timestamp() - interval '1 s' where id = $1`,
        late.held.approvalId,
      )
    expect(await changingBefore(LOCK, end, late.edit)).toMatchObject({ status: 410 })
    const { rows } = await sql(`select text_body from messages where message_id = any ($1)`, [
      rejected.messageId,
      late.messageId,
    ])
    expect(rows.map((row) => row.text_body)).not.toContain('New')
  })

  test('an edit of an approval request that was removed, or of a mail that was deleted before it was composed, changes nothing', async () => {
    const gone = await heldMail()
    const remove = () => sql('delete from approvals where id = $1', gone.held.approvalId)
    expect(await changingBefore('from approvals a', remove, gone.edit, 2)).toMatchObject({
      status: 404,
      body: { message: 'Request not found' },
    })
    const owner = await heldAgent(service)
    const { messageId } = await sendMail(owner)
    const { rows } = await sql('select id from approvals where subject = $1', messageId)
    const edit = () =>
      service.platform.patch(heldPath(owner, rows[0].id), { sha256: 'ab'.repeat(32), text: 'New' })
    const deletion = () => owner.delete(messagePath(messageId))
    expect(await changingBefore('keep-composed ', deletion, edit)).toMatchObject({
      status: 409,
      body: over,
    })
  })

  test('the service shows no review of a held mail if the mail’s bytes changed during the request, or if the bytes no longer exist', async () => {
    const changed = await heldMail()
    expect((await changed.review()).status).toBe(200)
    const other = await heldMail()
    const change = () =>
      sql(
        `update raw_mails set bytes = 'Subject: other' where id = (select raw_id from messages where message_id = $1)`,
        other.messageId,
      )
    expect(await changingBefore('find-outbound-content ', change, other.review)).toMatchObject({
      status: 409,
      body: { message: 'The mail changed meanwhile: read it again' },
    })
    const deleted = await heldMail()
    const remove = () => deleted.owner.delete(messagePath(deleted.messageId))
    expect(await changingBefore('find-outbound-content ', remove, deleted.review)).toMatchObject({
      status: 409,
    })
    expect(await deleted.review()).toMatchObject({
      status: 404,
      body: { message: 'Message not found' },
    })
    expect(await service.platform.get(`${deleted.path}/raw`)).toMatchObject({
      status: 404,
      body: { message: 'Message not found' },
    })
    const expired = await heldMail()
    await sql(
      'update messages set raw_id = null, raw_expired = true where message_id = $1',
      expired.messageId,
    )
    expect((await expired.review()).status).toBe(404)
  })

  test('the review of a held mail (its approval page) leaves out an invitation that disappears while the service reads the mail', async () => {
    const file = {
      filename: 'a.ics',
      contentType: 'text/calendar',
      content: btoa('BEGIN:VCALENDAR'),
    }
    for (const table of ['message_attachments', 'messages']) {
      const { messageId, review } = await heldMail({ attachments: [file] })
      const remove = () =>
        table === 'messages'
          ? sql(`update messages set message_id_hash = '\\x01' where message_id = $1`, messageId)
          : sql(
              `delete from message_attachments where message_row =
                 (select row from messages where message_id = $1)`,
              messageId,
            )
      const { status, body } = await changingBefore('find-attachment ', remove, review)
      expect([table, status, JSON.stringify(body).includes('VCALENDAR')]).toEqual([
        table,
        200,
        false,
      ])
    }
  })
})

test.each<[name: string, part: string, () => Promise<{ status: number; body: any }>]>([
  ['a draft', 'insert into drafts', () => agent.post('/v0/messages/drafts', { text: 'x' })],
  [
    'an email rule',
    'into email_rules',
    () => agent.post('/v0/email-rules', { type: 'BLOCK', scope: 'SEND', value: 'a@b.example' }),
  ],
  [
    'a project',
    'insert into projects',
    () => service.platform.post('/v0/platform/projects', { name: 'x' }),
  ],
])(
  'if the database stops while it stores %s, the response has status 503 and blames no field',
  async (_, part, store) => {
    expect(await whileFailing(part, store)).toMatchObject({
      status: 503,
      body: { error: 'unavailable' },
    })
    expect((await store()).status).toBe(201)
  },
)
