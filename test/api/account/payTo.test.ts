/** Tests that the service refuses payout addresses (payTo) at which a seller would lose money. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { privateKeyToAccount } from 'viem/accounts'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import { payTo, startTestTill, type TestTill } from '../../support/till/till.ts'

let till: TestTill
beforeAll(async () => {
  till = await startTestTill()
})
afterAll(() => till[Symbol.asyncDispose]())

const PATH = '/v0/platform/projects'
const upper = (address: string) => `0x${address.slice(2).toUpperCase()}`
/** One letter of this address has the wrong case, so the checksum of the address is wrong. */
const mistyped = payTo.replace('C', 'c')
const gasWallet = privateKeyToAccount(DEVNET_ACCOUNTS.gasWallet.privateKey).address

const refused: [string, string, RegExp][] = [
  ['a wrong checksum', mistyped, /^payTo must have the checksum of EIP-55/],
  ['the zero address', `0x${'0'.repeat(40)}`, /^payTo must not be the zero address/],
  ['the gas wallet', gasWallet, /^payTo must not be a gas wallet/],
  ['the gas wallet in lower case', gasWallet.toLowerCase(), /^payTo must not be a gas wallet/],
  ...Object.values(USDC_NETWORKS).flatMap(
    ({ network, usdcAddress }): [string, string, RegExp][] => [
      [`USDC on ${network}`, usdcAddress, /^payTo must not be the USDC contract/],
      [`USDC on ${network}, lower case`, usdcAddress.toLowerCase(), /^payTo must not be the USDC/],
    ],
  ),
]

for (const [name, address, message] of refused) {
  test(`the service refuses a payTo address that is ${name}`, async () => {
    const { platform } = till.service
    const { project } = await till.newSeller()
    for (const answer of [
      await platform.post(PATH, { payTo: address }),
      await platform.patch(`${PATH}/${project.id}`, { payTo: address }),
    ]) {
      expect([answer.status, answer.body.error]).toEqual([400, 'bad_request'])
      expect(answer.body.message).toMatch(message)
    }
    expect((await platform.get(`${PATH}/${project.id}`)).body.payTo).toBe(payTo)
  })
}

test('the service accepts a payTo address if its checksum is correct, or if all letters of the address have the same case', async () => {
  const { platform } = till.service
  for (const address of [payTo, payTo.toLowerCase(), upper(payTo)]) {
    const { status, body } = await platform.post(PATH, { payTo: address })
    expect([status, body.payTo]).toEqual([201, address])
  }
})
