import { expect, test } from 'bun:test'
import { IDLE_TIMEOUT_S } from '../../../api/http/server.ts'
import { parseConfig } from '../../../shared/config/config.ts'

test('the server’s idle timeout is longer than the longest time that a redeem call (payment) may wait', () => {
  const { settlementWaitMs } = parseConfig({ SETTLEMENT_WAIT_MS: '120000' })
  expect(() => parseConfig({ SETTLEMENT_WAIT_MS: '120001' })).toThrow('SETTLEMENT_WAIT_MS')
  // Bun closes a connection on which no bytes arrive or leave, even if a handler still runs.
  expect(IDLE_TIMEOUT_S * 1_000).toBeGreaterThan(settlementWaitMs + 10_000)
})
