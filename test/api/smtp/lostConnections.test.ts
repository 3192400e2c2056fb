import { expect, test } from 'bun:test'
import { MOMENTS } from '../../support/database/postgresProxy.ts'
import { cutEveryRoundTrip, proxyThrough } from '../../support/process/cuts.ts'
import { messagePath, startTestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

test('after the SMTP reply 250, a mail arrives exactly once, whichever of the listener’s database round trips is interrupted', async () => {
  const { proxy, through } = proxyThrough()
  await using service = await startTestService({ pools: ['inbound'], through: { smtp: through } })
  for (const moment of MOMENTS) {
    const agent = await service.newAgent()
    const cuts = await cutEveryRoundTrip(await proxy, moment, async (label) => {
      const messageId = `<${label}@x.test>`
      await service.deliver({ from: 'a@x.test', to: agent.address, text: label, messageId })
      await waitFor('the message', async () => {
        const { status } = await agent.get(messagePath(messageId))
        return status === 200
      })
      const { body } = await agent.get('/v0/messages?limit=100')
      expect(body.messages.filter((item: any) => item.messageId === messageId)).toHaveLength(1)
    })
    expect(cuts).toBeGreaterThan(0)
  }
})
