/** Tests large mail contents in an object store, through the public interfaces of the whole service. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { createBlobs } from '../../sql/blobs/blobs.ts'
import { buryIdleBlobs, removeAllDeadBlobs } from '../../sql/blobs/sweepBlobs.ts'
import { type Bucket, startBucket } from '../support/database/bucket.ts'
import { heldAgent, heldPath, requestOf } from '../support/mail/held.ts'
import { sendMail, sunkAt, untilStatus } from '../support/mail/outbound.ts'
import { type Sink, startSink } from '../support/mail/sink.ts'
import { printed, startProcess } from '../support/process/process.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../support/service.ts'
import { waitFor } from '../support/waitFor.ts'
import '../support/whole.ts'

let bucket: Bucket
let sink: Sink
let service: TestService
beforeAll(async () => {
  bucket = await startBucket()
  sink = await startSink()
  service = await startTestService({ env: { ...bucket.env, SMTP_RELAY_URL: sink.url } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
  await bucket[Symbol.asyncDispose]()
})

const MARKER = 'marker of an attachment '
const FILE = Buffer.alloc(150_000, MARKER)
const attached = {
  filename: 'a.bin',
  contentType: 'application/x-own',
  content: FILE.toString('base64'),
}

async function download(agent: Agent, path: string): Promise<{ status: number; bytes: Buffer }> {
  const response = await fetch(service.url + path, {
    headers: { authorization: `Bearer ${agent.key}` },
  })
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }
}
const rawOf = (agent: Agent, id: string) => download(agent, `${messagePath(id)}/raw`)
const fileOf = (agent: Agent, id: string) => download(agent, `${messagePath(id)}/attachments/att_1`)
/**
 * Returns the size of the largest raw mail or attachment in the database, and the number of objects in the object
 * store.
 */
async function stored() {
  const { rows } = await service.database.pool.query(
    `select coalesce(max(octet_length(bytes)), 0) as largest, count(blob)::int as objects from (
       select bytes, blob from raw_mails union all select bytes, blob from message_attachments) c`,
  )
  return rows[0] as { largest: number; objects: number }
}
/**
 * Makes the object store reachable again, and waits until the API can read the file there. The API tries to reach the
 * store only once a second.
 */
const backAgain = async (agent: Agent, messageId: string) => {
  await bucket.proxy.mend()
  await waitFor('the store', async () => (await fileOf(agent, messageId)).status === 200)
}
const large = (agent: Agent, subject: string) => ({
  from: 'ada@example.com',
  to: agent.address,
  subject,
  text: 'See the file.',
  attachments: [{ filename: 'a.bin', content: FILE }],
})

test('a large mail is received, read and searched, and its contents are stored encrypted in the object store', async () => {
  const agent = await service.newAgent()
  await service.deliver(large(agent, 'Large one'))
  const [message] = await waitForMessages(agent, 1)
  expect(message).toMatchObject({ subject: 'Large one', extractedText: 'See the file.' })
  const raw = await rawOf(agent, message.messageId)
  expect(raw.bytes.includes('Subject: Large one')).toBe(true)
  expect(raw.bytes.length).toBeGreaterThan(200_000)
  expect((await fileOf(agent, message.messageId)).bytes.equals(FILE)).toBe(true)
  expect((await agent.get('/v0/messages?q=large')).body.count).toBe(1)
  expect(await stored()).toEqual({ largest: 0, objects: 2 })
  const objects = bucket.names()
  expect(objects).toHaveLength(2)
  for (const name of objects) {
    const bytes = bucket.bytesOf(name)
    expect(name).toBe(`purser/${createHash('sha256').update(bytes).digest('hex')}`)
    expect([bytes.includes('marker'), bytes.includes('Subject')]).toEqual([false, false])
  }
})

test('if the stored original of a mail is damaged or missing, a request for it gets content_lost, but the text of the mail can be read', async () => {
  const agent = await service.newAgent()
  const before = new Set(bucket.names())
  await service.deliver(large(agent, 'Damaged'))
  const [message] = await waitForMessages(agent, 1)
  const names = bucket.names().filter((name) => !before.has(name))
  const path = `/v0/messages/${encodeURIComponent(message.messageId)}/raw`
  const lost = {
    status: 500,
    body: { error: 'content_lost', message: expect.stringMatching(/object store.*req_/) },
  }
  const contents = names.map((name) => [bucket.path(name), bucket.bytesOf(name)] as const)
  for (const [file] of contents) writeFileSync(file, 'x')
  expect(await agent.get(path)).toMatchObject(lost)
  for (const [file] of contents) rmSync(file)
  expect(await agent.get(path)).toMatchObject(lost)
  expect((await agent.get('/v0/messages')).body.messages[0].extractedText).toBe('See the file.')
  for (const [file, bytes] of contents) writeFileSync(file, bytes)
  expect((await rawOf(agent, message.messageId)).bytes.length).toBeGreaterThan(200_000)
})

test('a large mail is sent with its attachment to other hosts and to inboxes of the service', async () => {
  const [agent, peer] = [await service.newAgent(), await service.newAgent()]
  const { messageId } = await sendMail(agent, {
    to: ['bob@example.com', peer.address],
    attachments: [attached],
  })
  const copy = await sunkAt(sink, messageId)
  expect(Buffer.from(copy.email.attachments[0]!.content as ArrayBuffer).equals(FILE)).toBe(true)
  const [received] = await waitForMessages(peer, 1)
  expect((await fileOf(peer, received.messageId)).bytes.equals(FILE)).toBe(true)
  expect((await fileOf(agent, messageId)).bytes.equals(FILE)).toBe(true)
  expect((await rawOf(agent, messageId)).bytes.toString('latin1')).toBe(copy.raw)
  expect((await stored()).largest).toBeLessThan(65_536)
})

test('an owner edits a mail that waits for approval and has a large attachment, and then approves it with the hash of its new bytes', async () => {
  const agent = await heldAgent(service)
  const { messageId } = await sendMail(agent, { attachments: [attached] })
  const held = await requestOf(service, agent, messageId)
  const path = heldPath(agent, held.approvalId)
  const edited = await service.platform.patch(path, { sha256: held.sha256, subject: 'Other' })
  expect([edited.status, edited.body.message.subject]).toEqual([200, 'Other'])
  expect((await service.platform.post(`${path}/approve`, { sha256: held.sha256 })).status).toBe(409)
  const { sha256 } = edited.body
  expect((await service.platform.post(`${path}/approve`, { sha256 })).status).toBe(200)
  const copy = await sunkAt(sink, messageId)
  expect(createHash('sha256').update(Buffer.from(copy.raw, 'latin1')).digest('hex')).toBe(sha256)
  expect(copy.email.subject).toBe('Other')
})

test('while the object store is unreachable, small mail is delivered, requests for large contents get 503, and no mail is lost', async () => {
  const agent = await service.newAgent()
  await service.deliver(large(agent, 'Before'))
  const [before] = await waitForMessages(agent, 1)
  await bucket.proxy.cut()
  try {
    await service.deliver(large(agent, 'Meanwhile'))
    await service.deliver({
      from: 'ada@example.com',
      to: agent.address,
      subject: 'Small',
      text: 'x',
    })
    await waitFor('the small mail', async () => (await agent.get('/v0/messages')).body.count === 2)
    const send = (more: object) =>
      agent.post('/v0/messages/send', {
        to: ['ada@example.com'],
        subject: 'Out',
        text: 'x',
        ...more,
      })
    const refused = await send({ attachments: [attached] })
    expect([refused.status, refused.body.error, refused.headers.get('retry-after')]).toEqual([
      503,
      'unavailable',
      '2',
    ])
    expect((await send({})).status).toBe(201)
    expect((await fileOf(agent, before.messageId)).status).toBe(503)
    expect((await rawOf(agent, before.messageId)).status).toBe(503)
    expect((await agent.get(messagePath(before.messageId))).body.text).toBe('See the file.\n')
  } finally {
    await backAgain(agent, before.messageId)
  }
  const messages = await waitForMessages(agent, 4)
  expect(messages.map(({ subject }) => subject).toSorted()).toEqual([
    'Before',
    'Meanwhile',
    'Out',
    'Small',
  ])
  const late = messages.find(({ subject }) => subject === 'Meanwhile')
  expect((await fileOf(agent, late.messageId)).bytes.equals(FILE)).toBe(true)
})

test('if the object store is unreachable, a job that needs it waits without using up its attempts', async () => {
  const agent = await service.newAgent()
  const { pool } = service.database
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const { messageId } = await sendMail(agent, { attachments: [attached], sendAt })
  await bucket.proxy.cut()
  const job = async () => {
    const { rows } = await pool.query(
      `select j.attempts, j.locked_at, extract(epoch from j.run_at - clock_timestamp())::float8 as in_s
       from graphile_worker.jobs j join messages m on j.key = 'send_mail:' || m.row where m.message_id = $1`,
      [messageId],
    )
    return rows[0]
  }
  const hurry = async () => {
    await pool.query(
      `update outbound_mails o set next_attempt_at = clock_timestamp() from messages m
       where m.row = o.message_row and m.message_id = $1`,
      [messageId],
    )
    await pool.query(
      `select graphile_worker.reschedule_jobs(array(
         select j.id from graphile_worker.jobs j join messages m on j.key = 'send_mail:' || m.row
         where m.message_id = $1), run_at := now())`,
      [messageId],
    )
  }
  try {
    for (let n = 0; n < 2; n++) {
      await hurry()
      await waitFor('the job to be put off', async () => {
        const now = await job()
        return now !== undefined && now.in_s > 5 && now.in_s < 3_000
      })
      expect(await job()).toMatchObject({ attempts: 0, locked_at: null })
    }
  } finally {
    await backAgain(agent, messageId)
  }
  await hurry()
  await untilStatus(agent, messageId, 'sent')
  expect((await sunkAt(sink, messageId)).email.attachments).toHaveLength(1)
  expect(sink.mails.filter(({ email }) => email.messageId === messageId)).toHaveLength(1)
})

test('a project export contains large mails and attachments, and the objects of deleted mail are removed from the object store', async () => {
  const agent = await service.newAgent()
  await service.deliver(large(agent, 'Exported'))
  const [message] = await waitForMessages(agent, 1)
  const response = await fetch(
    `${service.url}/v0/platform/projects/${agent.project.id}/export?part=mail`,
    { headers: { authorization: `Bearer ${service.platform.key}` } },
  )
  const mbox = await response.text()
  expect(mbox).toContain('Subject: Exported')
  expect(mbox.length).toBeGreaterThan(200_000)

  const before = bucket.names().length
  expect((await agent.delete(messagePath(message.messageId))).status).toBe(204)
  const { pool } = service.database
  await pool.query(`update blobs set idle_since = idle_since - interval '2 hours'`)
  // The workers in this test do not search for unused objects by themselves, so the test starts the search.
  while ((await buryIdleBlobs(pool)) > 0);
  await removeAllDeadBlobs(pool, bucket.store)
  expect(bucket.names().length).toBeLessThanOrEqual(before - 2)
  const { rows } = await pool.query('select count(*)::int as n from blobs')
  expect(bucket.names()).toHaveLength(rows[0].n)
})

test('the erasure report of a project states until when its stored objects remain, and says if objects still wait after this time', async () => {
  const agent = await service.newAgent()
  await service.deliver(large(agent, 'Erased'))
  await waitForMessages(agent, 1)
  const path = `/v0/platform/projects/${agent.project.id}`
  expect((await service.platform.delete(path)).status).toBe(204)
  const erasure = await waitFor('the erasure', async () => {
    const { body } = await service.platform.get(`${path}/erasure`)
    return body.state === 'complete' && body
  })
  const blobsOf = ({ outside }: any) => outside.find(({ place }: any) => place === 'blobs')
  const endMs = Date.parse(erasure.completedAt)
  expect(Date.parse(blobsOf(erasure).until) - endMs).toBe(2 * 3_600_000)
  await service.database.pool.query(`update blobs set idle_since = idle_since - interval '3 hours'`)
  const late = blobsOf((await service.platform.get(`${path}/erasure`)).body)
  expect([late.until, late.description]).toEqual([null, expect.stringContaining('wait')])
})

test('a worker with BLOB_STORE deletes unused objects, and the webhooks worker pool starts without the object store’s secret', async () => {
  const { pool, url } = service.database
  await createBlobs(pool, bucket.store).keep(FILE)
  await pool.query(`update blobs set idle_since = idle_since - interval '2 hours'`)
  const due = bucket.names().length
  const { S3_SECRET_ACCESS_KEY: _, ...withoutSecret } = bucket.env
  const start = (name: string, env: Record<string, string>) =>
    startProcess('workers/main.ts', { DATABASE_URL: url, MAIL_DOMAIN: 'mail.test', ...env }, [
      ...['--pool', name],
    ])
  await using webhooks = start('webhooks', withoutSecret)
  await using refused = start('inbound', withoutSecret)
  await using _sweeping = start('outbound', bucket.env)
  await printed(webhooks, /"msg":"ready"/)
  expect(await refused.exited).toBe(78)
  expect(refused.stderr()).toStartWith('S3_SECRET_ACCESS_KEY: ')
  await waitFor('the sweep', () => bucket.names().length < due)
})

test('the metrics count the responses of the object store', async () => {
  const response = await fetch(`${service.url}/metrics`)
  const text = await response.text()
  expect(text).toMatch(
    /purser_blob_request_seconds_count\{operation="get",outcome="done",part="api",process="\w+"\} [1-9]/,
  )
  expect(text).toMatch(
    /purser_blob_request_seconds_count\{operation="put",outcome="away",part="smtp",process="\w+"\} [1-9]/,
  )
  expect(text).toMatch(/purser_blobs_waiting \d/)
  expect(text).toMatch(/purser_blobs_oldest_due_seconds \d/)
})
