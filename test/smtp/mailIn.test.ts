import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

test('a delivered message is read over REST', async () => {
  const agent = await service.newAgent()
  await service.deliver({
    from: 'Ada <ada@example.com>',
    to: agent.address,
    cc: 'carl@example.com',
    subject: 'Grüße aus Köln',
    text: 'Yes, please.\n\nOn Mon, Jan 5, 2026 at 9:30 AM Agent <a@mail.test> wrote:\n> Shall I order?\n',
    messageId: '<one@example.com>',
    attachments: [{ filename: 'a.txt', content: 'hello' }],
  })
  const [item] = await waitForMessages(agent, 1)
  expect(item).toEqual({
    messageId: '<one@example.com>',
    threadId: expect.stringMatching(/^thd_[0-9a-f]{24}$/),
    from: ['ada@example.com'],
    to: [agent.address],
    subject: 'Grüße aus Köln',
    text: 'Yes, please.\n\nOn Mon, Jan 5, 2026 at 9:30 AM Agent <a@mail.test> wrote:\n> Shall I order?\n\n',
    extractedText: 'Yes, please.',
    labels: ['received', 'unread'],
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  })
  const { status, body } = await agent.get(messagePath('<one@example.com>'))
  expect(status).toBe(200)
  expect(body).toEqual({
    ...item,
    inboxId: agent.address,
    cc: ['carl@example.com'],
    attachments: [
      {
        attachmentId: 'att_1',
        filename: 'a.txt',
        contentType: 'text/plain',
        size: 5,
        contentId: null,
        disposition: 'attachment',
      },
    ],
  })
})
