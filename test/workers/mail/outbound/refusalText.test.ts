import { expect, test } from 'bun:test'
import { connect, createServer, type Socket } from 'node:net'
import { sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { startTestService } from '../../../support/service.ts'

/**
 * Starts an SMTP proxy that replaces `NUL` and `BEL` in replies by U+0000 and U+0007, because no mail library sends
 * these characters.
 */
async function startOddRelay(sink: Sink) {
  const server = createServer((inner: Socket) => {
    const outer = connect(sink.port, '127.0.0.1')
    outer.on('error', () => {}).on('close', () => inner.destroy())
    inner.on('error', () => {}).on('close', () => outer.destroy())
    inner.pipe(outer)
    outer.on('data', (chunk) => {
      const answer = chunk.toString('latin1').replace('NUL', '\0').replace('BEL', '\u0007')
      inner.write(Buffer.from(answer, 'latin1'))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

test('an SMTP refusal is shown without the characters that PostgreSQL cannot store, and the refused message is not sent again', async () => {
  await using sink = await startSink()
  const relay = await startOddRelay(sink)
  const { port } = relay.address() as { port: number }
  await using service = await startTestService({
    smtp: false,
    env: { SMTP_RELAY_URL: `smtp://127.0.0.1:${port}` },
  })
  sink.refuseRecipient = (address) =>
    address.startsWith('odd')
      ? { code: 550, message: `5.1.1 noNUL suchBEL user ${'x'.repeat(476)}😀` }
      : null
  const agent = await service.newAgent()
  const { messageId } = await sendMail(agent, { to: ['odd@example.com', 'fine@example.com'] })
  const { deliveryError } = await untilStatus(agent, messageId, 'failed')
  expect(deliveryError).toStartWith('odd@example.com: 550 5.1.1 no such user xxx')
  expect(deliveryError.isWellFormed()).toBe(true)
  expect(sink.mails).toHaveLength(1)
  const { body } = await agent.get('/v0/suppressions')
  expect(JSON.stringify(body)).toContain('odd@example.com')
  relay.close()
})

test('if a relay refuses a mail with a text about certificates, the refusal does not count as a TLS error, and the mail fails permanently', async () => {
  await using sink = await startSink()
  await using service = await startTestService({
    smtp: false,
    env: { SMTP_RELAY_URL: sink.url },
  })
  sink.refuseData = () => ({ code: 554, message: '5.7.1 No mail about gift certificates' })
  const agent = await service.newAgent()
  const { messageId } = await sendMail(agent)
  const { deliveryError } = await untilStatus(agent, messageId, 'failed')
  expect(deliveryError).toBe('ada@example.com: 554 5.7.1 No mail about gift certificates')
})
