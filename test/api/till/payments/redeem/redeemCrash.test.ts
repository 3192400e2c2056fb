/** Kills an API process during a redeem call (which takes a payment), and repeats the call at another process. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { DEVNET_ACCOUNTS } from '../../../../../shared/till/devnetAccounts.ts'
import { printed, startProcess } from '../../../../support/process/process.ts'
import { startTcpProxy } from '../../../../support/process/tcpProxy.ts'
import { type Agent, createClient } from '../../../../support/service.ts'
import {
  PRICE,
  pay,
  RESOURCE,
  redeem,
  startTestTill,
  type TestTill,
} from '../../../../support/till/till.ts'
import { waitFor } from '../../../../support/waitFor.ts'
import '../../../../support/long.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller({ webhookUrl: 'http://127.0.0.1:9/hook' })
})
afterAll(() => till[Symbol.asyncDispose]())

const sent = () => till.client.getTransactionCount({ address: DEVNET_ACCOUNTS.gasWallet.address })

for (const { step, statement } of [
  { step: 'before the payment is claimed', statement: 'begin-idempotent' },
  { step: 'after the claim is stored, and before the process knows', statement: 'claim-payments' },
  { step: 'while the process reads the state of the payment', statement: 'find-payments' },
  { step: 'after the grant is stored, and before the response', statement: 'take-grants' },
]) {
  test(`a payment is redeemed exactly once, although its API process is killed ${step}`, async () => {
    const before = await sent()
    const url = new URL(till.service.database.url)
    await using database = await startTcpProxy(Number(url.port))
    url.port = String(database.port)
    await using doomed = startProcess('api/main.ts', {
      DATABASE_URL: url.href,
      DATA_DIR: till.service.config.dataDir,
      RPC_URL: till.rpcUrl,
      PORT: '0',
    })
    await printed(doomed, /"msg":"ready"/)
    const port = /"port":(\d+)/.exec(doomed.stdout())?.[1]
    database.muteOn = statement
    const { header } = await pay()
    const lost = createClient(`http://127.0.0.1:${port}`, seller.key).post(
      '/v0/payments/redeem',
      { paymentHeader: header, resource: RESOURCE, amount: PRICE },
      { 'idempotency-key': statement },
    )
    const outcome = lost.then(
      () => 'answered',
      () => 'lost',
    )
    await waitFor('the step', () => database.muted > 0)
    doomed.child.kill('SIGKILL')
    expect(await outcome).toBe('lost')

    const again = () => redeem(seller, header, {}, { 'idempotency-key': statement })
    const { body } = await again()
    expect(body.ok).toBe(true)
    expect((await again()).body).toEqual(body)
    expect((await redeem(seller, header)).body.reason).toBe('duplicate_settlement')
    expect(await sent()).toBe(before + 1)
    const { body: record } = await seller.get(`/v0/payments/${body.paymentId}`)
    expect(record).toMatchObject({ status: 'settled', txHash: body.txHash })
    expect(record.deliveries).toHaveLength(1)
  })
}
