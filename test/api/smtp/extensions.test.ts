import { afterAll, beforeAll, expect, test } from 'bun:test'
import { talkSmtp } from '../../support/mail/smtpTalk.ts'
import { startTestService, type TestService } from '../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

test('the response to EHLO names the SMTP extensions that the service supports', async () => {
  await using talk = await talkSmtp(service.smtp!.port)
  const offered = (await talk.say('EHLO client.test'))
    .split('\r\n')
    .slice(1)
    .map((line) => line.slice(4).split(' ')[0])
  expect(offered.sort()).toEqual(['8BITMIME', 'PIPELINING', 'SIZE'])
  expect(await talk.say('BDAT 4 LAST')).toMatch(/^50[0-3]/)
})

test('a sender address with non-ASCII letters is refused at MAIL, because no reply could reach the address', async () => {
  for (const command of [
    'MAIL FROM:<jürgen@example.com> SMTPUTF8',
    'MAIL FROM:<jürgen@example.com>',
    'MAIL FROM:<ada@example.com> SMTPUTF8',
  ]) {
    await using talk = await talkSmtp(service.smtp!.port)
    expect(await talk.say(command)).toStartWith('553 5.6.7')
  }
  await using talk = await talkSmtp(service.smtp!.port)
  expect(await talk.say('MAIL FROM:<ada@xn--bcher-kva.example> BODY=8BITMIME')).toStartWith('250')
})

test('a recipient with a non-ASCII local part is refused, but a non-ASCII domain is accepted', async () => {
  const agent = await service.newAgent()
  const send = (to: string) =>
    agent.post('/v0/messages/send', { to: [to], subject: 's', text: 't' })
  for (const to of ['jürgen@example.com', 'Jürgen <jürgen@exämple.com>']) {
    const { status, body } = await send(to)
    expect([status, body.message]).toEqual([
      400,
      'to[0] must be ASCII before the @ (SMTPUTF8 is not supported)',
    ])
  }
  expect((await send('Jürgen <ada@bücher.example>')).body.to).toEqual(['ada@xn--bcher-kva.example'])
})
