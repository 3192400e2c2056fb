/**
 * Tests that a purchase cannot reach a private network address. Neither an IP address in the URL nor a resolved host
 * name may lead there.
 */
import { expect, test } from 'bun:test'
import { answering } from '../../support/process/localServer.ts'
import { newBuyer, startPurseTill } from '../../support/purse/purseScene.ts'

test('a purchase at a private address is refused, and no request goes to a host name that resolves to a private address', async () => {
  await using till = await startPurseTill({
    env: { ALLOW_PRIVATE_NETWORKS: 'false' },
    parts: { resolve: answering('169.254.169.254') },
  })
  const buyer = await newBuyer(till, { fundsAtomic: 0n })
  for (const url of [
    'https://169.254.169.254/latest/meta-data',
    'http://169.254.169.254/latest/meta-data',
    'https://127.0.0.1/',
    'https://[::ffff:10.0.0.1]/',
    'https://2130706433/',
  ]) {
    const { status, body } = await buyer.pay(url)
    expect([url, status, (body as unknown as { message: string }).message]).toEqual([
      url,
      400,
      expect.stringContaining('url must be'),
    ])
  }
  const { body } = await buyer.pay('https://rebound.example/report')
  expect(body).toMatchObject({ state: 'failed', reason: 'not_reached', payment: null })
})
