import { expect, spyOn, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startSmtp } from '../../../api/smtp/server.ts'
import { Spool } from '../../../api/smtp/spool/spool.ts'
import { silentLog } from '../../support/logs.ts'
import { handOver, INBOUND_ENV, signedRequest } from '../../support/mail/signedMail.ts'
import { deliverRaw, talkSmtp } from '../../support/mail/smtpTalk.ts'
import { startTestService, waitForMessages } from '../../support/service.ts'

test('the listener reads a large mail at a limited rate, so that small mails arrive earlier', async () => {
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

test('if the disk fails, the SMTP client gets a temporary error reply that names no file', async () => {
  await using service = await startTestService({ workers: false })
  const agent = await service.newAgent()
  const { port } = service.smtp!
  const folder = join(service.config.dataDir, `incoming-${process.pid}`)
  rmSync(folder, { recursive: true })
  writeFileSync(folder, 'no folder')
  const deliver = () => deliverRaw(port, agent.address, `Subject: x\n\n${'x\n'.repeat(50_000)}`)
  expect(await deliver()).toBe('451 4.3.0 Something went wrong, try again later')
  rmSync(folder)
  expect(await deliver()).toStartWith('250')
})

// Listeners in two containers may have the same process id and DATA_DIR, as these two listeners do, which run in one
// process.
test('a listener takes large mail while another listener starts, runs and stops', async () => {
  await using service = await startTestService()
  const agent = await service.newAgent()
  let count = 0
  const deliver = ({ port }: { port: number }) => {
    const text = `Subject: ${++count}\n\n${`${count}\n`.repeat(50_000)}`
    return deliverRaw(port, agent.address, text)
  }
  const first = service.smtp!
  expect(await deliver(first)).toStartWith('250')
  const second = await startSmtp(service.config, service.database.url, silentLog)
  try {
    const replies = await Promise.all([first, second, first, second].map(deliver))
    expect(replies.map((reply) => reply.slice(0, 3))).toEqual(['250', '250', '250', '250'])
  } finally {
    await second.stop()
  }
  expect(await deliver(first)).toStartWith('250')
  expect(await waitForMessages(agent, 6)).toHaveLength(6)
})

test('while the disk is full, mail over SMTP and over HTTP gets a temporary error', async () => {
  await using service = await startTestService({ workers: false, env: INBOUND_ENV })
  const agent = await service.newAgent()
  const { port, httpPort } = service.smtp!
  const ways = async () => {
    await using talk = await talkSmtp(port)
    const mailFrom = await talk.say('MAIL FROM:<ada@example.com>')
    const { status } = await handOver(httpPort!, signedRequest({ to: [agent.address] }))
    return [mailFrom, status]
  }
  const room = spyOn(Spool.prototype, 'hasRoom').mockReturnValue(false)
  try {
    expect(await ways()).toEqual(['452 4.3.1 Insufficient system storage', 503])
    // The disk has the free space that must stay in reserve, but no room for the bytes of another mail.
    room.mockImplementation((bytes = 0) => bytes === 0)
    expect(await ways()).toEqual([expect.stringMatching(/^250/), 503])
    const refused = await deliverRaw(port, agent.address, 'Subject: x\n\nx\n')
    expect(refused).toBe('452 4.3.1 Insufficient system storage')
  } finally {
    room.mockRestore()
  }
  expect(await ways()).toEqual([expect.stringMatching(/^250/), 200])
})
