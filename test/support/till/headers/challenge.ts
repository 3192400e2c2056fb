/** Makes the body of a 402 response of a seller. */
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
