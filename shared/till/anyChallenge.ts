/**
 * Reads the x402 challenge of any seller, with any scheme and chain. A challenge of x402 version 1 is in the body, and
 * a challenge of x402 version 2 is in the header `PAYMENT-REQUIRED`.
 */
import { z } from 'zod'

const text = z.string().min(1)

const option = { scheme: text, payTo: text, asset: text, maxTimeoutSeconds: z.number().positive() }

/**
 * Describes the list of payment options. One readable option is enough, because other options may have a scheme that
 * this service does not know.
 */
const optionsOf = (entry: z.ZodType) =>
  z.array(z.unknown()).refine((entries) => entries.some((one) => entry.safeParse(one).success))

const challengeV1 = z.object({
  x402Version: z.literal(1),
  accepts: optionsOf(
    z.object({ ...option, network: text, maxAmountRequired: text, resource: text }),
  ),
})

const challengeV2 = z.object({
  x402Version: z.literal(2),
  resource: z.object({ url: text }),
  // The network name must have the form of CAIP-2: a namespace, a colon and a reference.
  accepts: optionsOf(z.object({ ...option, network: z.string().regex(/^[^:]+:.+/), amount: text })),
})

/**
 * Returns the x402 versions of the challenges in a 402 response. The list is empty if the response contains no
 * challenge.
 * @param header is the value of the header `PAYMENT-REQUIRED`, if the response has this header.
 */
export function challengeVersions(body: string, header: string | undefined): (1 | 2)[] {
  const isV1 = challengeV1.safeParse(readJson(body)).success
  const isV2 = challengeV2.safeParse(readJson(decoded(header))).success
  return [...(isV1 ? [1 as const] : []), ...(isV2 ? [2 as const] : [])]
}

const PAYEES_MAX = 20

/**
 * Returns the payTo addresses of a 402 response in both x402 versions, in lower case. The list is empty if the 402
 * response contains no challenge.
 * @param header is the value of the header `PAYMENT-REQUIRED`, if the response has this header.
 */
export function challengePayees(body: string, header: string | undefined): string[] {
  const options = [readJson(body), readJson(decoded(header))].flatMap((challenge) => {
    const accepts = (challenge as { accepts?: unknown } | null)?.accepts
    return Array.isArray(accepts) ? accepts : []
  })
  const payees = options.flatMap((entry: { payTo?: unknown } | null) =>
    typeof entry?.payTo === 'string' && /^0x[0-9a-f]{40}$/i.test(entry.payTo)
      ? [entry.payTo.toLowerCase()]
      : [],
  )
  return [...new Set(payees)].slice(0, PAYEES_MAX)
}

const decoded = (header: string | undefined): string =>
  header === undefined ? '' : Buffer.from(header, 'base64').toString('utf8')

function readJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
