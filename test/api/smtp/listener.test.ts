import { afterAll, beforeAll, expect, test } from 'bun:test'
import { deliverRaw, talkSmtp } from '../../support/mail/smtpTalk.ts'
import { startTestService, type TestService, waitForMessages } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

test('an unknown recipient gets 550 at RCPT, and a known recipient in the same SMTP transaction gets the mail', async () => {
  const agent = await service.newAgent()
  await using talk = await talkSmtp(service.smtp!.port)
  expect(await talk.say('MAIL FROM:<>')).toStartWith('250')
  expect(await talk.say('RCPT TO:<nobody@mail.test>')).toStartWith('550 5.1.1')
  expect(await talk.say(`RCPT TO:<${agent.address}>`)).toStartWith('250')
  expect(await talk.say('DATA')).toStartWith('354')
  expect(await talk.send('Message-ID: <k@example.com>\r\n\r\nHi.\r\n.\r\n')).toStartWith('250')
  const [item] = await waitForMessages(agent, 1)
  expect(item.messageId).toBe('<k@example.com>')
})

test('the SMTP listener relays no mail and offers no AUTH', async () => {
  await using talk = await talkSmtp(service.smtp!.port)
  await talk.say('MAIL FROM:<a@example.com>')
  expect(await talk.say('RCPT TO:<victim@example.org>')).toStartWith('550 5.7.1')
  expect(await talk.say('AUTH PLAIN AGEAYg==')).toMatch(/^50[0-3]/)
})

test("mail to postmaster goes to an inbox named postmaster, or else to the address in the operator's setting", async () => {
  await using own = await startTestService({ env: { POSTMASTER: 'Ops@mail.test' } })
  const { port } = own.smtp!
  const rcpt = async (to: string) => {
    await using talk = await talkSmtp(port)
    await talk.say('MAIL FROM:<ada@example.com>')
    return await talk.say(`RCPT TO:<${to}>`)
  }
  expect(await rcpt('postmaster@mail.test')).toStartWith('550')
  const ops = await own.newAgent({ emailName: 'ops' })
  const mail = (n: number) => `Message-ID: <${n}@example.com>\nSubject: ${n}\n\nx\n`
  expect(await deliverRaw(port, 'Postmaster@MAIL.test', mail(1))).toStartWith('250')
  expect(await deliverRaw(port, 'postmaster', mail(2))).toStartWith('250')
  await waitForMessages(ops, 2)
  expect(await rcpt('postmaster@elsewhere.test')).toStartWith('550')
  expect(await rcpt('webmaster')).toStartWith('501')
  const postmaster = await own.newAgent({ emailName: 'postmaster' })
  await waitFor('its inbox to be known', async () => {
    await deliverRaw(port, 'postmaster', mail(3))
    return (await postmaster.get('/v0/messages')).body.count > 0
  })
  // This service has no operator's setting for postmaster mail, so the recipient postmaster is unknown.
  await using talk = await talkSmtp(service.smtp!.port)
  await talk.say('MAIL FROM:<ada@example.com>')
  expect(await talk.say('RCPT TO:<postmaster>')).toStartWith('550')
})

test('a new inbox can receive mail at once, and a deleted inbox receives no more mail', async () => {
  const { body: created } = await service.platform.post('/v0/platform/projects', {
    emailName: 'fresh',
  })
  expect(await deliverRaw(service.smtp!.port, 'fresh@mail.test', 'Subject: x\n\nx\n')).toStartWith(
    '250',
  )
  await service.platform.delete(`/v0/platform/projects/${created.projectId}`)
  await waitFor('the listener to know', async () => {
    await using talk = await talkSmtp(service.smtp!.port)
    await talk.say('MAIL FROM:<a@example.com>')
    return (await talk.say('RCPT TO:<fresh@mail.test>')).startsWith('550')
  })
})

test('a mail ends only at CRLF.CRLF, so a bare line feed cannot smuggle in a second mail', async () => {
  const agent = await service.newAgent()
  for (const [n, end] of ['\n.\n', '\n.\r\n', '\r\n.\n', '\r.\r\n', '\r.\r'].entries()) {
    await using talk = await talkSmtp(service.smtp!.port)
    await talk.say('MAIL FROM:<a@example.com>')
    await talk.say(`RCPT TO:<${agent.address}>`)
    await talk.say('DATA')
    const smuggled = `MAIL FROM:<b@example.com>\r\nRCPT TO:<${agent.address}>\r\nDATA\r\nSubject: two\r\n\r\nx`
    const reply = await talk.send(`Message-ID: <s${n}@x.test>\r\n\r\none${end}${smuggled}\r\n.\r\n`)
    expect(reply).toStartWith('250')
    expect(await talk.say('NOOP')).toStartWith('250')
  }
  const items = await waitForMessages(agent, 5)
  expect(items.map((item) => item.messageId).sort()).toEqual(
    [0, 1, 2, 3, 4].map((n) => `<s${n}@x.test>`),
  )
})

test('a mail that is too large is refused at MAIL if SIZE is declared, or else after DATA', async () => {
  const agent = await service.newAgent()
  await using talk = await talkSmtp(service.smtp!.port)
  expect(await talk.say('MAIL FROM:<a@example.com> SIZE=99999999')).toStartWith('552')
  expect(await talk.say('MAIL FROM:<a@example.com>')).toStartWith('250')
  await talk.say(`RCPT TO:<${agent.address}>`)
  await talk.say('DATA')
  const line = `${'x'.repeat(998)}\r\n`
  const block = Buffer.from(line.repeat(1_000))
  for (let n = 0; n < 37; n++) talk.write(block)
  expect(await talk.send('\r\n.\r\n')).toStartWith('552')
  expect((await agent.get('/v0/messages')).body.count).toBe(0)
})

test('the 101st recipient of a mail gets the SMTP reply 452', async () => {
  const agent = await service.newAgent({ emailName: 'many' })
  await using talk = await talkSmtp(service.smtp!.port)
  await talk.say('MAIL FROM:<a@example.com>')
  for (let n = 0; n < 100; n++) {
    expect(await talk.say(`RCPT TO:<many+${n}@mail.test>`)).toStartWith('250')
  }
  expect(await talk.say('RCPT TO:<many+100@mail.test>')).toStartWith('452')
  await talk.say('DATA')
  expect(await talk.send('Message-ID: <m@x.test>\r\n\r\nHi.\r\n.\r\n')).toStartWith('250')
  expect(await waitForMessages(agent, 1)).toHaveLength(1)
})
