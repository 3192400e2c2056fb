/** Tests a smarthost that checks a mail for longer than a minute before it accepts the mail. */
import { expect, test } from 'bun:test'
import { sendMail } from '../../../../support/mail/outbound.ts'
import { startSink } from '../../../../support/mail/sink.ts'
import { messagePath, startTestService } from '../../../../support/service.ts'
import { waitFor } from '../../../../support/waitFor.ts'
import '../../../../support/whole.ts'

const CHECK_MS = 65_000

test('a smarthost that needs more than a minute to accept a mail gets the mail only once', async () => {
  await using sink = await startSink()
  sink.refuseData = async () => {
    await Bun.sleep(CHECK_MS)
    return null
  }
  await using service = await startTestService({
    env: { SMTP_RELAY_URL: sink.url },
  })
  const agent = await service.newAgent()
  const { messageId } = await sendMail(agent, { to: ['ada@example.net'] })
  await waitFor(
    'the outcome of the mail',
    async () => (await agent.get(messagePath(messageId))).body.deliveryStatus === 'sent',
    2 * CHECK_MS,
  )
  expect(sink.mails).toHaveLength(1)
}, 180_000)
