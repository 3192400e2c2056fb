/**
 * Sends invented conversations over real SMTP, and checks which threads their messages join. The author of the
 * conversations did not know the rules by which the service builds threads.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type ThreadScenario, threadCorpora } from '../../support/mail/corpora.ts'
import { deliverRaw } from '../../support/mail/smtpTalk.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

/**
 * Sends the messages of a scenario. Returns the keys of its messages, grouped by the thread that each message joined.
 */
async function play({ messages }: ThreadScenario): Promise<string[][]> {
  const inboxes = new Map<string, Agent>()
  const threads = new Map<string, string[]>()
  /** Maps the key of each message in the scenario to the Message-ID that the service gave to the message. */
  const renamed = new Map<string, string>()
  for (const { key, ...message } of messages) {
    const agent = inboxes.get(message.inbox) ?? (await service.newAgent())
    inboxes.set(message.inbox, agent)
    const count = (await agent.get('/v0/messages')).body.count
    const rename = (text: string) =>
      [...renamed].reduce((all, [from, to]) => all.replaceAll(from, to), text)
    let threadId: string
    if (message.sent) {
      const { body } = await agent.post('/v0/messages/send', {
        to: ['x@out.test'],
        subject: message.subject,
        text: key,
      })
      renamed.set(message.messageId!, body.messageId)
      threadId = body.threadId
    } else {
      const headers = [
        `From: ${message.from}`,
        `To: ${agent.address}`,
        `Subject: ${message.subject}`,
        ...(message.messageId === null ? [] : [`Message-ID: ${rename(message.messageId)}`]),
        ...(message.inReplyTo === null ? [] : [`In-Reply-To: ${rename(message.inReplyTo)}`]),
        ...(message.references === null
          ? []
          : [`References: ${rename(message.references.trimEnd())}`]),
      ]
      await deliverRaw(
        service.smtp!.port,
        agent.address,
        `${headers.join('\r\n')}\r\n\r\nBody of ${key}.\r\n`,
      )
      const list = await waitFor(`message ${key}`, async () => {
        const { body } = await agent.get('/v0/messages')
        return body.count > count ? body.messages : null
      })
      const own = list.find((one: any) => one.text.includes(`Body of ${key}.`))
      threadId = (await agent.get(messagePath(own.messageId))).body.threadId
    }
    threads.set(threadId, [...(threads.get(threadId) ?? []), key])
  }
  return [...threads.values()]
}

const sorted = (groups: string[][]) => groups.map((group) => group.toSorted()).toSorted()

for (const { name, items } of threadCorpora()) {
  describe(`the service builds the right threads in scenarios of the kind ${name}`, () => {
    for (const scenario of items.filter(({ must }) => must)) {
      test(`the messages of the scenario ${scenario.id} join the right threads: ${scenario.why}`, async () => {
        expect(sorted(await play(scenario))).toEqual(sorted(scenario.expected))
      })
    }
  })
}
