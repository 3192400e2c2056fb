import { expect, test } from 'bun:test'
import { sendMail, sunkAt } from '../../../support/mail/outbound.ts'
import { startSink } from '../../../support/mail/sink.ts'
import { shortestMs } from '../../../support/process/shortestMs.ts'
import { startTestService } from '../../../support/service.ts'
import '../../../support/process/alone.ts'

const LATE_MAX_MS = 1_000

test('a mail with sendAt is sent within one second after that time', async () => {
  await using sink = await startSink()
  await using service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
  const agent = await service.newAgent()
  const late = await shortestMs(LATE_MAX_MS, async () => {
    const sendAt = new Date(Date.now() + 2_500).toISOString()
    const { messageId } = await sendMail(agent, { sendAt })
    await sunkAt(sink, messageId)
    const lateMs = Date.now() - Date.parse(sendAt)
    expect(lateMs).toBeGreaterThanOrEqual(0)
    return lateMs
  })
  expect(late).toBeLessThan(LATE_MAX_MS)
})
