import { isDeepStrictEqual } from 'node:util'
import { jsonFault } from '../../../shared/till/bazaar/jsonBounds.ts'
import { BAZAAR, type Bazaar, bazaarOf } from '../../../shared/till/bazaar/metadata.ts'
import { readBazaar } from '../../../shared/till/bazaar/seen.ts'
import { encodeHeader } from '../../../shared/till/x402v2.ts'
import { provokeEndpointCheck } from '../../../sql/till/endpoints/endpointChecks.ts'
import type { Endpoint } from '../../../sql/till/endpoints/endpoints.ts'
import type { Services } from '../../http/services.ts'

/**
 * Names the HTTP header in which a facilitator tells how it handled an x402 extension (x402
 * specs/extensions/bazaar.md).
 */
export const EXTENSION_RESPONSES = 'EXTENSION-RESPONSES'

/** Sets the minimum number of milliseconds between two checks of an endpoint that are caused by settled payments. */
const LOOK_PAUSE_MS = 60_000

/**
 * Sets the maximum number of characters of a bazaar declaration (an x402 extension), because a longer declaration does
 * not fit into a header.
 */
const DECLARED_CHARS_MAX = 16_384

type Response =
  | { status: 'success' | 'processing' }
  | { status: 'rejected'; rejectedReason: string }

/**
 * Tells how the service handled the bazaar declarations (an x402 extension) in a payment. The payer only repeats the
 * seller's declarations, so the service does not store them. If they differ from those in the public list of paid
 * resources, a worker reads the seller's own 402 response.
 *
 * @returns the header that reports how the service handled the declarations, or `null` if the payment contains no
 *   bazaar declaration.
 */
export async function extensionResponses(
  { pool }: Services,
  endpoint: Endpoint | null,
  payment: unknown,
): Promise<string | null> {
  const { extensions } = (payment ?? {}) as { extensions?: Record<string, unknown> | null }
  const declared = extensions?.[BAZAAR]
  if (declared === undefined || declared === null) return null
  return encodeHeader({ [BAZAAR]: await judge() })

  async function judge(): Promise<Response> {
    const tooMuch = jsonFault(declared, DECLARED_CHARS_MAX)
    if (tooMuch !== null) return rejected(`bazaar ${tooMuch}`)
    const bazaar = readBazaar(declared)
    if (bazaar === null) return rejected('info must follow schema, without outside $ref or $id')
    if (endpoint === null) {
      return rejected(
        'the resource is no endpoint of the project: PUT /v0/sellers/endpoints registers it',
      )
    }
    if (!endpoint.discoverable) return rejected('the endpoint is not discoverable: PATCH sets it')
    if (isSame(bazaar, listedOf(endpoint))) return { status: 'success' }
    await provokeEndpointCheck(pool, endpoint.id, LOOK_PAUSE_MS)
    return { status: 'processing' }
  }
}

const rejected = (rejectedReason: string): Response => ({ status: 'rejected', rejectedReason })

const listedOf = ({ metadata, openApi, seen, urlPattern }: Endpoint): Bazaar | null =>
  bazaarOf({ ...openApi?.metadata, ...metadata }, urlPattern) ?? seen.bazaar ?? null

/**
 * Tells whether two bazaar declarations are equal. The comparison ignores the values of path parameters, because these
 * values differ in each request.
 */
function isSame(one: Bazaar, other: Bazaar | null): boolean {
  return other !== null && isDeepStrictEqual(withoutPath(one), withoutPath(other))
}

function withoutPath({ info, ...rest }: Bazaar) {
  const { pathParams: _, ...input } = info.input as Record<string, unknown>
  return { ...rest, info: { ...info, input } }
}
