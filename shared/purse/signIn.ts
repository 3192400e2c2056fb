/**
 * Reads a seller's sign-in challenge of the x402 extension `sign-in-with-x` for a buyer. With the extension
 * `sign-in-with-x`, a seller delivers a resource again to an address that has already paid for it.
 *
 * Standards: x402 extension `sign-in-with-x`, EIP-4361, EIP-191. The purse signs only a text that this service builds
 * from checked members of the challenge. A text that the seller wrote could say anything, such as an order for goods.
 */
import { type Address, getAddress, hashMessage, zeroAddress } from 'viem'
import { createSiweMessage } from 'viem/siwe'
import { z } from 'zod'
import { encodeHeader } from '../till/x402v2.ts'
import type { DigestSigner, PaymentHeader } from './paymentHeader.ts'

/**
 * AGE_MAX_MS is the maximum age of a sign-in challenge. AHEAD_MAX_MS is the maximum time by which the seller's clock
 * may be ahead of this machine's clock.
 */
const AGE_MAX_MS = 5 * 60_000
const AHEAD_MAX_MS = 60_000

/**
 * Describes a time in a sign-in challenge. EIP-4361 allows only ISO 8601 times. The signed text must repeat the time
 * exactly as the seller wrote it.
 */
const time = z.iso.datetime({ precision: 3 })
const line = z.string().regex(/^[\x20-\x7e]*$/)

const schema = z.object({
  info: z.object({
    domain: z.string().max(260),
    uri: z.url({ protocol: /^https?$/ }).max(2048),
    version: z.literal('1'),
    nonce: z.string().regex(/^[A-Za-z0-9]{8,128}$/),
    issuedAt: time,
    expirationTime: time.optional(),
    notBefore: time.optional(),
    statement: line.max(500).optional(),
    requestId: line.max(200).optional(),
    resources: z.array(z.url().max(2048)).max(16).optional(),
  }),
  supportedChains: z
    .array(z.object({ chainId: z.string().max(64), type: z.string().max(32) }))
    .max(32),
})

type SignInInfo = z.output<typeof schema>['info']

/** Describes a sign-in challenge that the purse may sign. The field `caip2` is the CAIP-2 name of the purse's chain. */
export type SignIn = { info: SignInInfo; caip2: string }

/**
 * Reads the sign-in challenge in a 402 response.
 * @param dialled.url is the requested URL to which the seller responded with 402.
 * @returns null if the 402 response holds no sign-in challenge, or if the challenge is for another host, another chain
 * or another time. The result is also null if EIP-4361 does not allow the challenge's members in a text.
 */
export function readSignIn(
  extensions: unknown,
  { url, caip2, nowMs }: { url: string; caip2: string; nowMs: number },
): SignIn | null {
  const given = (extensions as Record<string, unknown> | null | undefined)?.['sign-in-with-x']
  const read = schema.safeParse(given)
  if (!read.success) return null
  const { info, supportedChains } = read.data
  const { host, origin } = new URL(url)
  if (info.domain !== host || new URL(info.uri).origin !== origin) return null
  if (!supportedChains.some(({ chainId, type }) => chainId === caip2 && type === 'eip191')) {
    return null
  }
  const ageMs = nowMs - Date.parse(info.issuedAt)
  if (ageMs > AGE_MAX_MS || ageMs < -AHEAD_MAX_MS) return null
  if (info.expirationTime !== undefined && Date.parse(info.expirationTime) <= nowMs) return null
  if (info.notBefore !== undefined && Date.parse(info.notBefore) > nowMs) return null
  const signIn = { info, caip2 }
  return isWritable(signIn) ? signIn : null
}

function isWritable(signIn: SignIn): boolean {
  try {
    signInText(signIn, zeroAddress)
    return true
  } catch {
    return false
  }
}

/** Writes the text that a purse signs (EIP-4361). @throws {Error} if EIP-4361 does not allow a member of the text. */
function signInText({ info, caip2 }: SignIn, address: Address): string {
  const { issuedAt, expirationTime, notBefore, statement, requestId, resources, ...bound } = info
  return createSiweMessage({
    ...bound,
    address,
    chainId: Number(caip2.slice('eip155:'.length)),
    issuedAt: new Date(issuedAt),
    ...(expirationTime === undefined ? {} : { expirationTime: new Date(expirationTime) }),
    ...(notBefore === undefined ? {} : { notBefore: new Date(notBefore) }),
    ...(statement === undefined ? {} : { statement }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(resources === undefined ? {} : { resources }),
  })
}

/** Makes the header that signs in with the key of a purse. */
export async function signInHeader(signIn: SignIn, signer: DigestSigner): Promise<PaymentHeader> {
  const address: Address = getAddress(signer.address)
  const signature = await signer.sign(hashMessage(signInText(signIn, address)))
  const { info, caip2 } = signIn
  const value = { ...info, address, chainId: caip2, type: 'eip191', signature }
  return { name: 'SIGN-IN-WITH-X', value: encodeHeader(value) }
}
