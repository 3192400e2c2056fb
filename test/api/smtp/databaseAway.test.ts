import { expect, test } from 'bun:test'
import { deliverRaw, talkSmtp } from '../../support/mail/smtpTalk.ts'
import { startTestService, waitForMessages } from '../../support/service.ts'
import '../../support/long.ts'

test('while PostgreSQL is unreachable, mail to known addresses is accepted, unknown addresses get 451, and the accepted mail arrives later', async () => {
  await using service = await startTestService({ proxied: true })
  const agent = await service.newAgent()
  const port = service.smtp!.port
  expect(
    await deliverRaw(port, agent.address, 'Message-ID: <before@x.test>\n\nBefore.\n'),
  ).toStartWith('250')
  await waitForMessages(agent, 1)
  await service.proxy!.cut()
  for (let n = 0; n < 20; n++) {
    expect(
      await deliverRaw(port, agent.address, `Message-ID: <away${n}@x.test>\n\nAway ${n}.\n`),
    ).toStartWith('250')
  }
  {
    await using talk = await talkSmtp(port)
    await talk.say('MAIL FROM:<a@example.com>')
    expect(await talk.say('RCPT TO:<later@mail.test>')).toStartWith('451')
  }
  await service.proxy!.mend()
  const items = await waitForMessages(agent, 21)
  expect(new Set(items.map((item) => item.messageId)).size).toBe(21)
})
