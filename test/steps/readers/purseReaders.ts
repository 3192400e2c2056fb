/** Lists functions that read the 402 response of a seller, and the settlement that a seller reports. */
import { brokenBound, covers } from '../../../shared/purse/mandate.ts'
import { keptOffer, keptProof } from '../../../shared/purse/offerReceipt.ts'
import { chooseOffer, readChallenge } from '../../../shared/purse/offers.ts'
import { readSellerSettlement } from '../../../shared/purse/sellerSettlement.ts'
import { readSignIn } from '../../../shared/purse/signIn.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import { JSON_TEXT, URL_TEXT } from '../inputs/grammars.ts'
import type { Reader } from './reader.ts'

const ANSWER_MAX = 64 * 1024
const network = USDC_NETWORKS['base-sepolia']
const payer = `0x${'ab'.repeat(20)}`
const encoded = (text: string) => Buffer.from(text).toString('base64')

const challenge = (text: string) =>
  JSON.stringify({
    x402Version: 2,
    error: text.slice(0, 100),
    resource: { url: text.slice(0, 2_000) },
    accepts: Array.from({ length: 32 }, (_, n) => ({
      scheme: 'exact',
      network: network.caip2,
      amount: String(n + 1),
      asset: network.usdcAddress,
      payTo: payer,
      maxTimeoutSeconds: 60,
      extra: { name: network.eip712Name, version: network.eip712Version, note: text.slice(0, 200) },
    })),
  })

const chosen = (text: string) => {
  const read = readChallenge(encoded(challenge(text)), '')
  return read === null ? null : chooseOffer(read, { url: 'https://a.b/c', network, payer: '0x' })
}

const signIn = (text: string) => ({
  'sign-in-with-x': {
    info: {
      domain: 'a.b',
      uri: `https://a.b/${text}`,
      version: '1',
      nonce: 'a1b2c3d4e5',
      issuedAt: '2026-01-05T09:30:00.000Z',
      statement: text,
      resources: Array.from({ length: 16 }, () => `https://a.b/${text}`),
    },
    supportedChains: Array.from({ length: 32 }, () => ({ chainId: text, type: 'eip191' })),
  },
})

const offers = (text: string) => ({
  'offer-receipt': {
    info: { offers: Array.from({ length: 16 }, () => ({ format: 'jws', signature: text })) },
  },
})

const mandate = (url: string) => ({
  network: 'base',
  hosts: ['*.example.com'],
  resources: Array.from({ length: 50 }, (_, n) => `${url}${n}`),
  payees: [payer],
  perPaymentAtomic: 1n,
  askAboveAtomic: null,
})

export const PURSE_READERS: readonly Reader[] = [
  {
    name: 'purse/offers.ts readChallenge',
    max: ANSWER_MAX,
    grammar: JSON_TEXT,
    read: (text) => readChallenge(null, text),
  },
  {
    name: 'purse/offers.ts readChallenge: header',
    max: ANSWER_MAX,
    grammar: JSON_TEXT,
    read: (text) => readChallenge(encoded(text), ''),
  },
  { name: 'purse/offers.ts chooseOffer', max: ANSWER_MAX, grammar: JSON_TEXT, read: chosen },
  {
    name: 'purse/sellerSettlement.ts readSellerSettlement',
    max: ANSWER_MAX,
    grammar: JSON_TEXT,
    read: (text) => readSellerSettlement(encoded(text)),
  },
  {
    name: 'purse/signIn.ts readSignIn',
    max: ANSWER_MAX,
    grammar: URL_TEXT,
    read: (text) =>
      readSignIn(signIn(text), { url: 'https://a.b/', caip2: network.caip2, nowMs: 0 }),
  },
  {
    name: 'purse/offerReceipt.ts keptProof',
    max: ANSWER_MAX,
    grammar: URL_TEXT,
    read: (text) => keptProof({ format: 'jws', signature: text }),
  },
  {
    name: 'purse/offerReceipt.ts keptOffer',
    max: 4 * 1024,
    grammar: URL_TEXT,
    read: (text) => keptOffer(offers(text), { payTo: payer, amountAtomic: 1n, network }),
  },
  {
    name: 'purse/mandate.ts covers',
    max: 4 * 1024,
    grammar: URL_TEXT,
    read: (text) => covers(mandate(text), { host: text, url: text, network: 'base' }),
  },
  {
    name: 'purse/mandate.ts brokenBound',
    max: 4 * 1024,
    grammar: URL_TEXT,
    read: (text) => brokenBound(mandate('u'), { payTo: text, amountAtomic: 1n }),
  },
]
