/** The payers of these tests: the wallets of the x402 packages. */
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import { wrapFetchWithPayment as wrapFetchV2, x402Client } from '@x402/fetch'
import axios from 'axios'
import { withPaymentInterceptor } from 'x402-axios'
import { wrapFetchWithPayment } from 'x402-fetch'
import { type newPayer, SEPOLIA, type TestTill } from '../support/till.ts'

/** An account of the product's copy of viem. The wallets have their own copies with different types. */
export type Account = Awaited<ReturnType<typeof newPayer>>

/** The result of a purchase: status and X-PAYMENT-RESPONSE header. */
type Bought = { status: number; header: string | null }

/** Real wallets, unmodified. */
export const buyers: Record<string, (account: Account, url: string) => Promise<Bought>> = {
  'x402-fetch': async (account, url) => {
    const response = await wrapFetchWithPayment(fetch, account as never)(url)
    return { status: response.status, header: response.headers.get('x-payment-response') }
  },
  'x402-axios': async (account, url) => {
    const client = withPaymentInterceptor(axios.create() as never, account as never)
    const { status, headers } = await client.get(url)
    return { status, header: headers['x-payment-response'] }
  },
  '@x402/fetch (v1)': async (account, url) => {
    const client = new x402Client().registerV1(
      'base-sepolia',
      new ExactEvmSchemeV1(account as never),
    )
    const response = await wrapFetchV2(fetch, client)(url)
    return { status: response.status, header: response.headers.get('x-payment-response') }
  },
}

/** USDC of an account, in atomic units. */
export const balanceOf = (till: TestTill, address: `0x${string}`) =>
  till.client.readContract({
    address: SEPOLIA.usdcAddress,
    abi: [
      {
        type: 'function',
        name: 'balanceOf',
        stateMutability: 'view',
        inputs: [{ name: 'account', type: 'address' }],
        outputs: [{ name: '', type: 'uint256' }],
      },
    ] as const,
    functionName: 'balanceOf',
    args: [address],
  })
