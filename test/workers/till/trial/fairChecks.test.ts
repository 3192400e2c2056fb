/**
 * Tests that the payment checks of one project do not occupy the job slots that settlements and other projects' checks
 * need.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { serve } from 'bun'
import type { Address } from 'viem'
import { newCheckId } from '../../../../shared/ids.ts'
import { createCheck } from '../../../../sql/till/payments/paymentChecks.ts'
import { deployWallet } from '../../../support/till/smartWallet.ts'
import {
  fund,
  newPayer,
  pay,
  payer,
  redeem,
  redeemToEnd,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'
import { newClaim } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

/** Holds a payer about whom the chain node never answers. */
const SILENT: Address = '0x00000000000000000000000000000000000051e7'
const CHECKS = 60
/** Limits how many job slots the payment checks of one project may have at the same time. */
const PROJECT_SLOTS = 6

/** Starts a proxy to the chain node that answers no request about the payer SILENT. */
function startSilentProxy(target: string) {
  let open = 0
  const proxy = {
    url: '',
    most: 0,
    stop: () => server.stop(true),
  }
  const server = serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const body = await request.text()
      if (body.toLowerCase().includes(SILENT.slice(2))) {
        proxy.most = Math.max(proxy.most, ++open)
        await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
        open--
        return new Response(null, { status: 502 })
      }
      return fetch(target, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
    },
  })
  proxy.url = `http://127.0.0.1:${server.port}`
  return proxy
}

let till: TestTill
let proxy: ReturnType<typeof startSilentProxy>
let wallet: Address
beforeAll(async () => {
  till = await startTestTill({
    proxy(rpcUrl) {
      proxy = startSilentProxy(rpcUrl)
      return proxy.url
    },
  })
  wallet = await deployWallet(till.client, payer.address)
  await fund(till.client, wallet, 10_000n)
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  await proxy.stop()
})

test('the payment checks of one project occupy a few job slots, while another project checks and settles payments', async () => {
  const { pool } = till.service.database
  const greedy = await till.newSeller({ resource: 'https://greedy.example.com/report' })
  const other = await till.newSeller()
  for (let n = 0; n < CHECKS; n++) {
    await createCheck(pool, {
      id: newCheckId(),
      claim: newClaim(greedy.project.id, { payer: SILENT }),
      claims: true,
      reasonWithoutCode: null,
    })
  }
  await waitFor('the checks to hold what they can', () => proxy.most >= PROJECT_SLOTS)
  const account = await newPayer(till.client)
  const settled = await redeemToEnd(other, (await pay({}, { account })).header)
  expect(settled.body).toMatchObject({ ok: true })
  const checked = await redeem(other, (await pay({ from: wallet })).header)
  expect(checked.body).toMatchObject({ ok: true })
  expect(proxy.most).toBe(PROJECT_SLOTS)
})
