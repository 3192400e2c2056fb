/**
 * Makes the same API calls with each value of the setting `ANSWERS`, because clients that were written for other mail
 * services need the value `full`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'

const SENT = ['messageId', 'threadId', 'from', 'to', 'cc', 'subject', 'labels', 'createdAt']
const ITEM = ['messageId', 'threadId', 'from', 'to', 'subject', 'text', 'labels', 'createdAt']
const more = (fields: string[], ...added: string[]) => [...fields, ...added].toSorted()
const fieldsOf = (value: object) => Object.keys(value).toSorted()

for (const answers of ['standard', 'full'] as const) {
  const isFull = answers === 'full'
  describe(`with the setting ANSWERS=${answers}, each API response has exactly the fields of this setting`, () => {
    let service: TestService
    let agent: Agent
    let sent: any
    beforeAll(async () => {
      service = await startTestService({
        smtp: false,
        workers: false,
        env: isFull ? { ANSWERS: 'full' } : {},
      })
      agent = await service.newAgent()
      sent = await agent.post('/v0/messages/send', {
        to: ['ada@example.com'],
        cc: ['bob@example.com'],
        subject: 'Offer',
        text: 'Shall I order?',
      })
    })
    afterAll(() => service[Symbol.asyncDispose]())

    test('the response to a send call contains the addresses of all recipients', () => {
      expect(sent.status).toBe(201)
      const text = isFull ? ['text', 'extractedText'] : []
      expect(fieldsOf(sent.body)).toEqual(more(SENT, 'inboxId', ...text))
      const shown = isFull ? 'Shall I order?' : undefined
      expect([sent.body.text, sent.body.extractedText]).toEqual([shown, shown])
      const { from, to, cc, inboxId } = sent.body
      expect({ from, to, cc, inboxId }).toEqual({
        from: [agent.address],
        to: ['ada@example.com'],
        cc: ['bob@example.com'],
        inboxId: agent.address,
      })
    })

    test(`the response to a reply has all addresses, is ${isFull ? 'with' : 'without'} inboxId, and stays the same if the Idempotency-Key is repeated`, async () => {
      const path = `${messagePath(sent.body.messageId)}/reply`
      const reply = () =>
        agent.post(path, { text: 'And?', replyAll: true }, { 'idempotency-key': 'again' })
      const { status, body } = await reply()
      expect(status).toBe(201)
      const added = isFull ? ['inboxId', 'text', 'extractedText'] : []
      expect(fieldsOf(body)).toEqual(more(SENT, ...added))
      if (isFull) expect([body.text, body.extractedText]).toEqual(['And?', 'And?'])
      const { from, to, cc } = body
      expect({ from, to, cc }).toEqual({
        from: [agent.address],
        to: ['ada@example.com'],
        cc: ['bob@example.com'],
      })
      if (isFull) expect(body.inboxId).toBe(agent.address)
      expect((await reply()).body).toEqual(body)
    })

    test(`the items in a list of messages are shown ${isFull ? 'with' : 'without'} inboxId`, async () => {
      for (const query of ['', '?q=Shall']) {
        const [item] = (await agent.get(`/v0/messages${query}`)).body.messages.slice(-1)
        const wanted = isFull ? more(ITEM, 'inboxId', 'cc', 'extractedText') : more(ITEM)
        expect(fieldsOf(item).filter((name) => name !== 'highlights')).toEqual(wanted)
        if (isFull) {
          expect([item.inboxId, item.extractedText]).toEqual([agent.address, item.text])
          expect(item.cc).toEqual(['bob@example.com'])
        }
      }
    })

    test(`the response to a PUT of a credential is shown ${isFull ? 'with' : 'without'} the times of its last use and last rotation`, async () => {
      const put = () => agent.put('/v0/vault/bank', { type: 'CUSTOM', data: { pin: '1' } })
      const { body } = await put()
      expect(fieldsOf(body).includes('lastUsedAt')).toBe(isFull)
      expect(fieldsOf(body).includes('lastRotatedAt')).toBe(isFull)
      if (!isFull) return
      await agent.get('/v0/vault/bank')
      const [listed] = (await agent.get('/v0/vault')).body.credentials
      expect(Date.parse(listed.lastUsedAt)).toBeGreaterThan(0)
      const { lastUsedAt, lastRotatedAt } = (await put()).body
      expect(lastUsedAt).toBe(listed.lastUsedAt)
      expect(lastRotatedAt).toBe((await agent.get('/v0/vault/bank')).body.lastRotatedAt)
    })

    test(`a sent mail is shown ${isFull ? 'with' : 'without'} extractedText`, async () => {
      const { body } = await agent.get(messagePath(sent.body.messageId))
      const thread = (await agent.get(`/v0/threads/${sent.body.threadId}`)).body
      for (const message of [body, thread.messages[0]]) {
        expect([message.inboxId, message.extractedText]).toEqual([
          agent.address,
          isFull ? 'Shall I order?' : undefined,
        ])
      }
    })
  })
}
