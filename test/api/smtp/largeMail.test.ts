import { expect, test } from 'bun:test'
import { deliverRaw, talkSmtp } from '../../support/mail/smtpTalk.ts'
import { startTestService, waitForMessages } from '../../support/service.ts'

test('the listener reads a large mail at a limited rate, so that small mails overtake it', async () => {
  await using service = await startTestService({ env: { SMTP_LARGE_KB_PER_S: '4' } })
  const agent = await service.newAgent()
  const { port } = service.smtp!
  await using talk = await talkSmtp(port)
  await talk.say('MAIL FROM:<a@example.com>')
  await talk.say(`RCPT TO:<${agent.address}>`)
  await talk.say('DATA')
  let answered = false
  const reply = talk.send(
    `Subject: large\r\n\r\n${'x'.repeat(998)}\r\n`.repeat(200).concat('.\r\n'),
  )
  reply.then(
    () => {
      answered = true
    },
    () => {},
  )
  expect(await deliverRaw(port, agent.address, 'Subject: small\n\nx\n')).toStartWith('250')
  const [item] = await waitForMessages(agent, 1)
  expect([item!.subject, answered]).toEqual(['small', false])
})
