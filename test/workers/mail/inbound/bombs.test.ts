/**
 * Tests that reading a hostile file stays within the limits of time and memory, and that the next file is read
 * afterwards.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { BOMBS } from '../../../support/mail/bombs.ts'
import { messagePath, startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/process/alone.ts'
import '../../../support/whole.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ pools: ['inbound'] })
})
afterAll(() => service[Symbol.asyncDispose]())

/**
 * Limits the processor time for reading an attachment (workers/mail/inbound/readAttachments.ts), including the start of
 * the child process.
 */
const CPU_MAX_MS = 16_000

for (const [name, build] of Object.entries(BOMBS)) {
  test(name, async () => {
    const agent = await service.newAgent()
    const messageId = `<${name.replaceAll(' ', '-')}@example.com>`
    await service.deliver({
      ...{ from: 'mallory@evil.test', to: agent.address, subject: name, text: 'See.', messageId },
      attachments: [build(), { filename: 'after.txt', content: 'The file behind it.' }],
    })
    const attachments = await waitFor('both files to be read', async () => {
      const { status, body } = await agent.get(messagePath(messageId))
      if (status !== 200) return null
      const isRead = body.attachments.every(({ text }: any) => text.state !== 'pending')
      return isRead ? body.attachments : null
    })
    const [bomb, after] = attachments
    expect(bomb.text.state).toBeOneOf(['ready', 'none', 'failed'])
    expect(bomb.text.chars).toBeLessThanOrEqual(1_000_000)
    expect(after.text.state).toBe('ready')
    const { rows } = await service.database.pool.query(
      'select cpu_ms::int as ms from attachment_reading where project_id = $1',
      [agent.project.id],
    )
    expect(rows[0].ms).toBeLessThan(CPU_MAX_MS)
  })
}
