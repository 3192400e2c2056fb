/** Tests that every message of a corpus of test mails reaches an inbox, readable and complete. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { insertInboundMails } from '../../../../sql/mail/inbound/inboundMails.ts'
import { mailCorpora } from '../../../support/mail/corpora.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

/**
 * Sets the minimum fraction of a corpus of test mails whose messages must show a text. It is below 1, because some
 * messages have only one line or only a header.
 */
const READABLE_SHARE = 0.95
const UNPARSEABLE_SHARE = 0.03
const BATCH = 50

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false })
})
afterAll(() => service[Symbol.asyncDispose]())

for (const { name, items: files } of mailCorpora()) {
  test(`the inbox stores all ${files.length} messages of the ${name} corpus, readable and complete`, async () => {
    const agent = await service.newAgent()
    const { pool } = service.database
    const mails = files.map((path) => ({
      sourceKey: crypto.randomUUID(),
      bytes: readFileSync(path),
      envelopeFrom: 'sender@example.com',
      inboxes: [{ address: agent.address, envelopeTo: agent.address }],
      remoteIp: '127.0.0.1',
      helo: 'x',
      receivedAt: new Date(),
    }))
    const before = process.memoryUsage().rss
    for (let at = 0; at < mails.length; at += BATCH) {
      await insertInboundMails(pool, mails.slice(at, at + BATCH))
    }
    await waitFor(
      'all messages',
      async () =>
        (
          await pool.query(
            `select from inbound_mails where project_id = $1 and state = 'accepted'`,
            [agent.project.id],
          )
        ).rowCount === 0,
      60_000,
    )
    const { rows: states } = await pool.query<{ state: string; n: number }>(
      'select state, count(*)::int as n from inbound_mails where project_id = $1 group by state',
      [agent.project.id],
    )
    const count = Object.fromEntries(states.map(({ state, n }) => [state, n]))
    // If the corpus of test mails contains a message twice, the second copy counts as a repeated delivery.
    expect(count.stored! + (count.retransmission ?? 0)).toBe(files.length)
    expect(count.retransmission ?? 0).toBeLessThan(files.length * 0.05)

    const messages: any[] = []
    let token = ''
    do {
      const { body } = await agent.get(`/v0/messages?limit=100${token}`)
      messages.push(...body.messages)
      token = body.nextPageToken === undefined ? '' : `&pageToken=${body.nextPageToken}`
    } while (token !== '')
    expect(messages).toHaveLength(count.stored!)
    const readable = messages.filter(
      ({ text, subject }) => text.trim() !== '' || subject.trim() !== '',
    )
    expect(readable.length / messages.length).toBeGreaterThan(READABLE_SHARE)
    // If a message has a missing boundary or an endless header, the service shows the raw text of the message, which is
    // never empty.
    const unparseable = messages.filter(({ labels }) => labels.includes('unparseable'))
    expect(unparseable.length / messages.length).toBeLessThan(UNPARSEABLE_SHARE)
    expect(unparseable.filter(({ text }) => text.trim() === '')).toEqual([])

    // The API returns each message with its attachments, and the raw mail equals the delivered bytes.
    const originals = new Set(mails.map(({ bytes }) => bytes.toString('latin1')))
    for (const { messageId } of messages) {
      const { status, body } = await agent.get(messagePath(messageId))
      expect([messageId, status]).toEqual([messageId, 200])
      for (const { attachmentId, size } of body.attachments) {
        const bytes = await download(agent, `${messagePath(messageId)}/attachments/${attachmentId}`)
        expect([messageId, attachmentId, bytes.length]).toEqual([messageId, attachmentId, size])
      }
      const raw = await download(agent, `${messagePath(messageId)}/raw`)
      expect(originals.has(raw.toString('latin1'))).toBe(true)
    }
    // The memory limit for 13 MB of mail includes the memory of the parser and the database driver, and objects that
    // the garbage collector has not freed yet.
    expect(process.memoryUsage().rss - before).toBeLessThan(1024 * 1024 * 1024)
  })
}

async function download(agent: Agent, path: string): Promise<Buffer> {
  const answer = await fetch(service.url + path, {
    headers: { authorization: `Bearer ${agent.key}` },
  })
  expect([path, answer.status]).toEqual([path, 200])
  return Buffer.from(await answer.arrayBuffer())
}
