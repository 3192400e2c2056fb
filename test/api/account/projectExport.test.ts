/**
 * Tests that a project's export is complete, shows the state at one moment, has no secrets, and stops when its reader
 * disconnects.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createExports } from '../../../api/account/exports.ts'
import { PurserPlatform } from '../../../api/client/purserPlatform.ts'
import { generateKey } from '../../../shared/apiKey.ts'
import { insertPlatformKey } from '../../../sql/account/keys/keys.ts'
import { createPlatformKey, revokePlatformKey } from '../../../sql/account/keys/platformKeys.ts'
import { createBlobs } from '../../../sql/blobs/blobs.ts'
import { createPool } from '../../../sql/db.ts'
import { silentLog } from '../../support/logs.ts'
import { rawMail, receive } from '../../support/mail/mailRows.ts'
import { expireAll } from '../../support/retention.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { newSettled } from '../../support/till/tillRows.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let service: TestService
let pool: TestService['database']['pool']
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  pool = service.database.pool
})
afterAll(() => service[Symbol.asyncDispose]())

const pathOf = ({ project }: Agent, part?: string) =>
  `/v0/platform/projects/${project.id}/export${part === undefined ? '' : `?part=${part}`}`
const open = (agent: Agent, part?: string, init: RequestInit = {}, key = service.platform.key) =>
  fetch(service.url + pathOf(agent, part), {
    ...init,
    headers: { authorization: `Bearer ${key}` },
  })
/**
 * Reads the beginning of a project export and then stops reading, but keeps the connection open. If the test used
 * `fetch`, the whole export would be read into memory.
 */
async function stall(agent: Agent, key = service.platform.key): Promise<Socket> {
  const { hostname, port } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  socket.write(
    `GET ${pathOf(agent, 'json')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
  )
  const [head] = await once(socket, 'data')
  socket.pause()
  expect(String(head)).toStartWith('HTTP/1.1 200')
  return socket
}
const linesOf = (text: string): any[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

/**
 * Stores messages of 100 KB each in the inbox. All these messages together do not fit into the socket buffers between
 * the service and the reader of the export.
 */
async function fill(agent: Agent, messages: number): Promise<void> {
  await receive(pool, agent.project.id)
  await pool.query(
    `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, content_hash, created_at,
       text_body, text_bytes, stored_bytes)
     select project_id, thread_row, direction, 'm' || n, h, h, created_at, repeat('x', 100000), 100000, 100000
     from messages, generate_series(2, $2::int) n, sha256(('m' || n)::bytea) h where project_id = $1`,
    [agent.project.id, messages],
  )
}
const snapshots = async () =>
  (
    await pool.query(
      `select from pg_stat_activity where datname = current_database() and application_name = 'purser api (export)'
       and xact_start is not null`,
    )
  ).rowCount
const noSnapshot = () => waitFor('the end of all snapshots', async () => (await snapshots()) === 0)

test('an export as JSON Lines has every row of the project, no row of another project, and no secret', async () => {
  const [agent, neighbour] = [await service.newAgent(), await service.newAgent()]
  const { id: projectId } = agent.project
  for (const one of [agent, neighbour]) {
    const canary = one === agent ? 'canary-own' : 'canary-neighbour'
    await receive(pool, one.project.id, rawMail({ subject: canary }))
    const secret = {
      type: 'LOGIN',
      data: { password: `secret-${canary}` },
      metadata: { of: canary },
    }
    expect((await one.put('/v0/vault/site', secret)).status).toBeLessThan(300)
    await one.post('/v0/email-rules', {
      type: 'BLOCK',
      scope: 'RECEIVE',
      value: `${canary}@x.example`,
    })
    await newSettled(pool, { projectId: one.project.id, description: canary })
  }
  const hook = await agent.post('/v0/webhooks', {
    url: 'http://127.0.0.1:9/h',
    events: ['message.received'],
  })
  await receive(pool, projectId, rawMail({ text: 'line\u2028separator "quoted" \\ \u0001' }))
  const response = await open(agent)
  expect(response.headers.get('content-type')).toBe('application/jsonl')
  const text = await response.text()
  const lines = linesOf(text)
  expect(lines[0]).toMatchObject({ kind: 'project', format: 1, projectId, retention: { logs: 90 } })
  const counts: Record<string, number> = {}
  for (const { kind } of lines.slice(1, -1)) counts[kind] = (counts[kind] ?? 0) + 1
  expect(lines.at(-1)).toEqual({ kind: 'end', counts })
  expect(counts).toMatchObject({
    message: 2,
    thread: 2,
    credential: 1,
    emailRule: 1,
    payment: 1,
    webhook: 1,
    delivery: 1,
  })
  expect(counts.log).toBeGreaterThan(0)
  const first = lines.find(({ kind }) => kind === 'message')
  expect(first).toMatchObject({
    subject: 'canary-own',
    direction: 'received',
    originalIsKept: true,
  })
  expect(first.labels).toContain('received')
  const payment = lines.find(({ kind }) => kind === 'payment')
  expect([payment.amountAtomic, payment.signedReceipt]).toEqual(['10000', expect.any(String)])
  expect(lines.find(({ kind }) => kind === 'credential').versions[0].metadata).toEqual({
    of: 'canary-own',
  })
  expect(text).not.toContain('secret-canary')
  expect(text).not.toContain('canary-neighbour')
  expect(text).not.toContain(hook.body.secret)
  const platform = new PurserPlatform({ apiKey: service.platform.key, baseUrl: service.url })
  const streamed = await new Response(await platform.projects.export(projectId, 'json')).text()
  expect(linesOf(streamed).at(-1).counts).toEqual({ ...counts, log: counts.log! + 1 })
  const { logs } = (await agent.get('/v0/logs?action=project.export')).body
  expect(logs).toHaveLength(2)
  expect(logs[0]).toMatchObject({
    actor: service.platform.key.slice(0, 17),
    description: expect.stringContaining('json'),
  })
})

test('a project export contains drafts, approvals, the policy and the time of scheduled mail', async () => {
  const agent = await service.newAgent()
  const path = `/v0/platform/projects/${agent.project.id}`
  const mail = { to: ['ada@example.com'], subject: 'later', text: 't' }
  const sendAt = new Date(Date.now() + 86_400_000).toISOString()
  await agent.post('/v0/messages/send', { ...mail, sendAt })
  await service.platform.patch(path, { sendPolicy: 'approve', approverEmail: 'owner@example.com' })
  await agent.post('/v0/messages/send', { ...mail, subject: 'held' })
  const content = Buffer.from('attached').toString('base64')
  const attachments = [{ filename: 'a.txt', contentType: 'text/plain', content }]
  const draft = await agent.post('/v0/messages/drafts', { ...mail, subject: 'draft', attachments })
  expect(draft.status).toBe(201)
  const lines = linesOf(await (await open(agent)).text())
  const of = (kind: string) => lines.filter((line) => line.kind === kind)
  expect(of('project')).toMatchObject([
    { sendPolicy: 'approve', approverEmail: 'owner@example.com', approvalHours: 72 },
  ])
  expect(of('draft')).toMatchObject([{ content: { subject: 'draft' }, attachments }])
  const messages = of('message')
  const held = messages.find(({ subject }) => subject === 'held')
  expect(of('approval')).toMatchObject([{ state: 'waiting', messageId: held.messageId }])
  expect(messages.find(({ subject }) => subject === 'later').sendAt).toBe(sendAt)
})

test('a project export contains the purse (agent’s wallet) with its mandates (spending limits) and purchases, and the project’s own addresses as a seller', async () => {
  const agent = await service.newAgent()
  const path = `/v0/platform/projects/${agent.project.id}`
  const ownAddresses = [`0x${'ab'.repeat(20)}`]
  await service.platform.patch(path, { ownAddresses })
  expect((await service.platform.post(`${path}/purse`, {})).status).toBeLessThan(300)
  const mandate = { name: 'weather', hosts: ['api.example.com'], maxPerPayment: '0.05' }
  const made = await service.platform.post(`${path}/mandates`, { ...mandate, maxPerDay: '1' })
  expect([made.status, made.body.message]).toEqual([201, undefined])
  const url = 'https://api.example.com/weather?token=secret-canary'
  const quote = await agent.post('/v0/purse/quote?timeout=0', { url })
  expect([quote.status, quote.body.message]).toEqual([202, undefined])
  const text = await (await open(agent)).text()
  expect(text).not.toContain('secret-canary')
  const lines = linesOf(text)
  expect(lines[0].ownAddresses).toEqual(ownAddresses)
  expect(lines.filter(({ kind }) => kind === 'mandate')).toMatchObject([
    { mandateId: made.body.mandateId, name: 'weather', perPaymentAtomic: '50000', state: 'active' },
  ])
  expect(lines.filter(({ kind }) => kind === 'purchase')).toMatchObject([
    { purchaseId: quote.body.purchaseId, of: 'quote', host: 'api.example.com', path: '/weather' },
  ])
})

test('a project export contains the refunds that the seller sends by hand and the service records', async () => {
  const agent = await service.newAgent()
  const { id } = await newSettled(pool, { projectId: agent.project.id })
  await pool.query('update payments set finalized_at = clock_timestamp() where id = $1', [id])
  const made = await service.platform.post(
    `/v0/payments/${id}/refund`,
    { amount: '0.001' },
    { 'idempotency-key': 'export' },
  )
  expect([made.status, made.body.message]).toEqual([200, undefined])
  const lines = linesOf(await (await open(agent)).text())
  expect(lines.filter(({ kind }) => kind === 'refund')).toMatchObject([
    { refundId: made.body.refundId, paymentId: id, amountAtomic: '1000', state: 'expected' },
  ])
})

test('a mail without a Message-ID has the same id in the mbox export and in the JSON export', async () => {
  const agent = await service.newAgent()
  const bare = 'From: a@b.example\r\nSubject: bare\r\n\r\nno id'
  await receive(pool, agent.project.id, bare)
  await receive(pool, agent.project.id, rawMail({ subject: 'with an id' }))
  const lines = linesOf(await (await open(agent)).text())
  const message = lines.find(({ subject, kind }) => kind === 'message' && subject === 'bare')
  const mbox = await (await open(agent, 'mail')).text()
  expect(mbox).toContain(`X-Purser-Message-ID: ${message.messageId}\n`)
  expect(mbox.match(/X-Purser-Message-ID/g)).toHaveLength(1)
})

test('if a client reads a project export slowly, all rows still show the state of one single moment', async () => {
  const agent = await service.newAgent()
  await fill(agent, 300)
  const reader = (await open(agent)).body!.getReader()
  const chunks = [(await reader.read()).value!]
  await receive(pool, agent.project.id)
  await pool.query(`delete from messages where project_id = $1 and message_id = 'm300'`, [
    agent.project.id,
  ])
  expect(await snapshots()).toBe(1)
  for (;;) {
    const { value, done } = await reader.read()
    if (done) break
    chunks.push(value)
  }
  const lines = linesOf(Buffer.concat(chunks).toString())
  expect(lines.at(-1).counts.message).toBe(300)
  const ids = lines.filter(({ kind }) => kind === 'message').map(({ messageId }) => messageId)
  expect([new Set(ids).size, ids.includes('m300')]).toEqual([300, true])
  await noSnapshot()
})

test('no database snapshot stays open after the reader of an export disconnects, or after a HEAD request for an export', async () => {
  const agent = await service.newAgent()
  await fill(agent, 300)
  for (const part of ['json', 'mail']) {
    const leaving = new AbortController()
    const response = await open(agent, part, { signal: leaving.signal })
    await response.body!.getReader().read()
    leaving.abort()
    await noSnapshot()
  }
  expect((await open(agent, 'mail', { method: 'HEAD' })).status).toBe(200)
  expect(await snapshots()).toBe(0)
})

test('an export that loses its database connection ends with an error and never looks complete', async () => {
  const agent = await service.newAgent()
  await fill(agent, 600)
  const reader = (await open(agent)).body!.getReader()
  await reader.read()
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'purser api (export)' and xact_start is not null`,
  )
  const readOn = async () => {
    while (!(await reader.read()).done);
  }
  await expect(readOn()).rejects.toThrow()
  await noSnapshot()
  const next = linesOf(await (await open(agent)).text())
  expect(next.at(-1).counts.message).toBe(600)
})

test('at most four exports run at the same time, two of them for one platform key, and any other export is refused until one ends', async () => {
  const agent = await service.newAgent()
  await fill(agent, 200)
  const others = [generateKey('platform'), generateKey('platform')]
  for (const key of others) await insertPlatformKey(pool, key)
  const refusalOf = async (key: string) => {
    const refused = await open(agent, 'json', {}, key)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '30'])
    return refused.json()
  }
  const error = { error: 'rate_limited', status: 429 }
  const readers = await Promise.all([stall(agent), stall(agent)])
  expect(await refusalOf(service.platform.key)).toEqual({
    ...error,
    message: 'At most 2 exports of a platform key may run at once',
  })
  readers.push(...(await Promise.all([stall(agent, others[0]), stall(agent, others[0])])))
  expect(await refusalOf(others[1]!)).toEqual({
    ...error,
    message: 'At most 4 exports may run at once',
  })
  for (const reader of readers) reader.destroy()
  await noSnapshot()
  const next = await open(agent)
  expect(next.status).toBe(200)
  await next.text()
})

/**
 * Streams the given pieces as the export of a new project, as fast as the reader takes them.
 * @param options.signal aborts the export.
 */
async function streamed(
  pieces: AsyncGenerator<Uint8Array>,
  options: { limits?: Parameters<typeof createExports>[2]; signal?: AbortSignal; pauseMs?: number },
): Promise<number> {
  const { limits, signal = new AbortController().signal, pauseMs = 0 } = options
  const projectId = (await service.newAgent()).project.id
  const entry = { actor: { projectId, keyPrefix: 'own', requestId: 'req_own' }, part: 'json' }
  const idle = createPool({ url: service.database.url, size: 2, name: 'purser api (export)' })
  const exports = createExports({ pool: idle, blobs: createBlobs(pool, null) }, silentLog, limits)
  try {
    const taken = (await exports.open(projectId, entry))!
    const reader = exports.stream(taken, pieces, { signal, admitAgain: async () => {} }).getReader()
    let chunks = 0
    for (; !(await reader.read()).done; chunks++) await Bun.sleep(pauseMs)
    return chunks
  } finally {
    expect(exports.size()).toBe(0)
    await noSnapshot()
    await exports.stop()
  }
}
async function* fourPieces() {
  for (let n = 0; n < 4; n++) yield Buffer.alloc(64 * 1024)
}

test('if the client of a project export reads too slowly, the service ends the export early and closes the database snapshot', async () => {
  const limits = { slowMaxMs: 50 }
  expect(await streamed(fourPieces(), { limits })).toBe(4)
  const slow = streamed(fourPieces(), { limits, pauseMs: 100 })
  await expect(slow).rejects.toThrow('an export ended early')
})

test('a project export that takes too long ends with an error', async () => {
  const late = streamed(fourPieces(), { limits: { limitMs: -1 } })
  await expect(late).rejects.toThrow('an export ended early')
})

test('an export that is aborted while its last piece is sent never looks complete', async () => {
  const leaving = new AbortController()
  const pieces = async function* () {
    yield Buffer.alloc(1)
    leaving.abort()
  }
  const aborted = streamed(pieces(), { signal: leaving.signal })
  await expect(aborted).rejects.toThrow('an export ended early')
})

test('the log of the organization names the key that exported and deleted a project, even after the project is erased', async () => {
  const agent = await service.newAgent()
  await (await open(agent)).text()
  await service.platform.delete(`/v0/platform/projects/${agent.project.id}`)
  await pool.query('delete from audit_log where project_id = $1', [agent.project.id])
  const { rows } = await pool.query(
    `select actor, action, detail, outcome from audit_log where project_id = 'organization' and subject = $1 order by row`,
    [agent.project.id],
  )
  expect(rows.map(({ actor: _, ...entry }) => entry)).toEqual([
    { action: 'project.export', detail: 'json', outcome: 'ok' },
    { action: 'project.delete', detail: null, outcome: 'ok' },
  ])
  for (const { actor } of rows) expect(service.platform.key.startsWith(`${actor}`)).toBe(true)
})

test('only a platform key exports a project, and only a project that is not deleted', async () => {
  const agent = await service.newAgent()
  expect((await agent.get(pathOf(agent))).status).toBe(403)
  const bad = await service.platform.get(pathOf(agent, 'zip'))
  expect([bad.status, bad.body.message]).toEqual([400, 'part must be one of "json", "mail"'])
  const unknown = await service.platform.get('/v0/platform/projects/prj_0/export')
  expect([unknown.status, unknown.body.message]).toEqual([404, 'Project not found'])
  expect((await open(agent)).status).toBe(200)
  await service.platform.delete(`/v0/platform/projects/${agent.project.id}`)
  expect((await service.platform.get(pathOf(agent))).status).toBe(404)
  await noSnapshot()
})

const HOSTILE: Record<string, string> = {
  forged:
    'before\r\nFrom evil@example.com Mon Jan  5 09:30:00 2026\r\nSubject: forged\r\n\r\nforged',
  quoted: '>From here\r\n>>From there\r\nFrom\r\nfrom small\r\n From far',
  first: 'From the first line\r\n',
  bare: 'bare\nFrom evil@example.com Mon Jan  5 09:30:00 2026\nlf\rFrom cr',
  bytes: 'caf\u00e9 \u{1f600}',
}

/** The following Python program opens an mbox file, and prints its messages as JSON after removing the mbox quoting. */
const READ_MBOX = `
import json, mailbox, re, sys
box = mailbox.mbox(sys.argv[1])
print(json.dumps([
  [m['Subject'], m.get_from(), re.sub(rb'^>(>*From )', rb'\\1', box.get_bytes(k), flags=re.M).decode('latin1'),
   [p.get_payload(decode=True).decode('utf-8') for p in m.walk() if p.get_content_type() == 'text/plain']]
  for k, m in box.items()]))`

describe.skipIf(Bun.which('python3') === null)("Python's mailbox reads the mbox", () => {
  test('in an mbox export, a mail with a hostile body or sender stays complete, and a reader of the file finds no forged message', async () => {
    const agent = await service.newAgent()
    const { id: projectId } = agent.project
    const raws = new Map<string, string>()
    for (const [subject, text] of Object.entries(HOSTILE)) {
      const raw = rawMail({ subject, text, from: 'ada@example.com' })
      raws.set(subject, raw)
      await receive(pool, projectId, raw)
    }
    await pool.query(
      `update messages set from_addresses = array[E'a b\\nFrom c'] where project_id = $1 and subject = 'quoted'`,
      [projectId],
    )
    await receive(pool, projectId, rawMail({ subject: 'old', text: 'From the stored text' }))
    await service.platform.patch(`/v0/platform/projects/${projectId}`, {
      retention: { rawMail: 30 },
    })
    await pool.query(
      `update messages set created_at = '2026-01-05T09:30:00Z' where project_id = $1 and subject = 'old'`,
      [projectId],
    )
    await expireAll(pool)
    const { body } = await agent.post('/v0/messages/send', {
      to: ['ada@example.com'],
      subject: 'queued',
      text: 'Not sent yet',
    })
    const response = await open(agent, 'mail')
    expect(response.headers.get('content-type')).toBe('application/mbox')
    const read = readMbox(Buffer.from(await response.arrayBuffer()))
    expect(read.map(([subject]) => subject)).toEqual(['old', ...Object.keys(HOSTILE), 'queued'])
    const bySubject = new Map(read.map((one) => [one[0], one]))
    for (const [subject, raw] of raws) {
      const kept = Buffer.from(raw)
        .toString('latin1')
        .replaceAll('\r\n', '\n')
        // For some mbox readers a bare CR ends a line, so the export must also quote a "From" after a bare CR.
        .replace('\rFrom', '\r>From')
      expect(bySubject.get(subject)![2].trimEnd()).toBe(kept.trimEnd())
    }
    expect(bySubject.get('old')![1]).toBe('ada@example.com Mon Jan  5 09:30:00 2026')
    expect(bySubject.get('old')![3].join('')).toBe('>From the stored text\n')
    expect(bySubject.get('old')![2]).toContain('X-Purser-Original: composed again')
    expect(bySubject.get('quoted')![1]).toStartWith('MAILER-DAEMON ')
    expect(bySubject.get('queued')![2]).toContain(body.messageId)
  })
})

/** Returns for each message in an mbox its subject, its separator line, its bytes and its texts. */
function readMbox(bytes: Buffer): [string, string, string, string[]][] {
  const folder = mkdtempSync(join(tmpdir(), 'purser-mbox-'))
  try {
    writeFileSync(join(folder, 'box'), bytes)
    const { stdout, stderr } = Bun.spawnSync(['python3', '-c', READ_MBOX, join(folder, 'box')])
    expect(stderr.toString()).toBe('')
    return JSON.parse(stdout.toString())
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test('a project export ends when its platform key is revoked', async () => {
  const agent = await service.newAgent()
  await fill(agent, 400)
  const { created, rawKey } = await createPlatformKey(pool, 'lost')
  for (const isRevoked of [false, true]) {
    const socket = await stall(agent, rawKey)
    let tail = ''
    socket.on('data', (data) => {
      tail = (tail + data.toString()).slice(-1_000)
    })
    if (isRevoked) await revokePlatformKey(pool, created.id)
    await Bun.sleep(2_500)
    socket.resume()
    await waitFor('the end', async () => socket.destroyed || tail.includes('"kind":"end"'))
    expect(tail.includes('"kind":"end"')).toBe(!isRevoked)
    socket.destroy()
  }
  await noSnapshot()
})
