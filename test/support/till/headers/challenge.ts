/** Makes the body of the 402 that a seller sends. */
import { buildChallenge } from '../../../../shared/till/x402.ts'
import { payTo } from './payment.ts'

export const CHALLENGE = JSON.stringify(
  buildChallenge({
    network: 'base-sepolia',
    amountAtomic: 10_000n,
    resource: 'https://api.example.com/report',
    payTo,
  }),
)
