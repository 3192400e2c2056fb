/** Holds the buyers of the client tests, which pay with the wallets of the x402 packages. */
import { wrapAxiosWithPayment, x402Client as x402AxiosClient } from '@x402/axios'
import { ExactEvmScheme } from '@x402/evm'
import { registerExactEvmScheme } from '@x402/evm/exact/client'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import { wrapFetchWithPayment as wrapFetchV2, x402Client } from '@x402/fetch'
import axios from 'axios'
import { withPaymentInterceptor } from 'x402-axios'
import { wrapFetchWithPayment } from 'x402-fetch'
import { type newPayer, SEPOLIA, type TestTill } from '../support/till/till.ts'

/**
 * Describes an account of the viem package that this service installs. The x402 packages contain other copies of viem,
 * whose types are different.
 */
export type Account = Awaited<ReturnType<typeof newPayer>>

/** Holds the result of a purchase: the HTTP status, and the settlement header of each x402 version. */
export type Bought = { status: number; v1: string | null; v2: string | null }

/**
 * Describes the client with which a buyer pays. `speaks` lists the x402 versions that the client supports, the
 * preferred version first. If `only` is set, the client throws when a seller offers an unsupported x402 version.
 */
export type Buyer = {
  speaks: readonly (1 | 2)[]
  only?: true
  buy: (account: Account, url: string) => Promise<Bought>
}

const fetched = (response: Response): Bought => ({
  status: response.status,
  v1: response.headers.get('x-payment-response'),
  v2: response.headers.get('payment-response'),
})

const buyWith = async (client: x402Client, url: string) =>
  fetched(await wrapFetchV2(fetch, client)(url))

/** Holds unmodified buyer clients of other x402 packages. */
export const buyers: Record<string, Buyer> = {
  'x402-fetch': {
    speaks: [1],
    buy: async (account, url) => fetched(await wrapFetchWithPayment(fetch, account as never)(url)),
  },
  'x402-axios': {
    speaks: [1],
    buy: async (account, url) => {
      const client = withPaymentInterceptor(axios.create() as never, account as never)
      const { status, headers } = await client.get(url)
      return { status, v1: headers['x-payment-response'] ?? null, v2: null }
    },
  },
  '@x402/fetch (v1)': {
    speaks: [1],
    only: true,
    buy: (account, url) =>
      buyWith(
        new x402Client().registerV1('base-sepolia', new ExactEvmSchemeV1(account as never)),
        url,
      ),
  },
  '@x402/fetch (v2)': {
    speaks: [2],
    buy: (account, url) =>
      buyWith(new x402Client().register('eip155:*', new ExactEvmScheme(account as never)), url),
  },
  '@x402/fetch': {
    speaks: [2, 1],
    buy: (account, url) =>
      buyWith(registerExactEvmScheme(new x402Client(), { signer: account as never }), url),
  },
  '@x402/axios': {
    speaks: [2, 1],
    buy: async (account, url) => {
      const client = new x402AxiosClient()
      registerExactEvmScheme(client as never, { signer: account as never })
      const instance = wrapAxiosWithPayment(axios.create() as never, client)
      const { status, headers } = await instance.get(url)
      return {
        status,
        v1: headers['x-payment-response'] ?? null,
        v2: headers['payment-response'] ?? null,
      }
    },
  },
}

/** Returns the x402 version in which a buyer's client pays an offer. Returns null if the client signs no payment. */
export function versionPaid(buyer: Buyer, offers: readonly (1 | 2)[]): 1 | 2 | null {
  if (buyer.only && !offers.every((version) => buyer.speaks.includes(version))) return null
  return buyer.speaks.find((version) => offers.includes(version)) ?? null
}

/** Reads the USDC balance of an account, in atomic units. */
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
