/**
 * Buys a resource over x402 as a payer with its own key. The program signs the authorization that the x402 challenge
 * asks for, and repeats the request with it.
 */
import { randomBytes } from 'node:crypto'
import { privateKeyToAccount } from 'viem/accounts'

const { PAYER_KEY = '', URL: url = 'http://127.0.0.1:4000/weather' } = process.env
const payer = privateKeyToAccount(PAYER_KEY as `0x${string}`)
const CHAIN_IDS: Record<string, number> = { base: 8453, 'base-sepolia': 84532 }
const FIELDS =
  'address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce'
const fields = FIELDS.split(', ').map((field) => {
  const [type = '', name = ''] = field.split(' ')
  return { type, name }
})

const challenge: any = await (await fetch(url)).json()
const { payTo, maxAmountRequired, asset, network, maxTimeoutSeconds, extra } = challenge.accepts[0]
const nowS = Math.floor(Date.now() / 1000)
// An EIP-3009 authorization is a transfer that anybody may submit, once, before it expires.
const authorization = {
  from: payer.address,
  to: payTo,
  value: maxAmountRequired,
  validAfter: String(nowS - 60),
  validBefore: String(nowS + maxTimeoutSeconds),
  nonce: `0x${randomBytes(32).toString('hex')}` as const,
}
const signature = await payer.signTypedData({
  domain: { ...extra, chainId: CHAIN_IDS[network], verifyingContract: asset },
  types: { TransferWithAuthorization: fields } as Record<string, typeof fields>,
  primaryType: 'TransferWithAuthorization',
  message: authorization,
})
const payment = { x402Version: 1, scheme: 'exact', network, payload: { signature, authorization } }
const answer = await fetch(url, { headers: { 'x-payment': btoa(JSON.stringify(payment)) } })
console.log(answer.status, await answer.text())
const settlement = JSON.parse(atob(answer.headers.get('x-payment-response') ?? 'e30='))
console.log('transaction:', settlement.transaction)
