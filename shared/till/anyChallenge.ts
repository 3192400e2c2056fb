/** The challenge of any seller, with any scheme and chain: version 1 in the body, version 2 in `PAYMENT-REQUIRED`. */
import { z } from 'zod'

const text = z.string().min(1)

const option = { scheme: text, payTo: text, asset: text, maxTimeoutSeconds: z.number().positive() }

const challengeV1 = z.object({
  x402Version: z.literal(1),
  accepts: z
    .array(z.object({ ...option, network: text, maxAmountRequired: text, resource: text }))
    .min(1),
})

const challengeV2 = z.object({
  x402Version: z.literal(2),
  resource: z.object({ url: text }),
  accepts: z
    // CAIP-2: a namespace, a colon, a reference.
    .array(z.object({ ...option, network: z.string().regex(/^[^:]+:.+/), amount: text }))
    .min(1),
})

/**
 * The versions in which a 402 asks for a payment; none: it is no challenge.
 * @param header `PAYMENT-REQUIRED`, if there.
 */
export function challengeVersions(body: string, header: string | undefined): (1 | 2)[] {
  const decoded = header === undefined ? '' : Buffer.from(header, 'base64').toString('utf8')
  const isV1 = challengeV1.safeParse(readJson(body)).success
  const isV2 = challengeV2.safeParse(readJson(decoded)).success
  return [...(isV1 ? [1 as const] : []), ...(isV2 ? [2 as const] : [])]
}

function readJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
