/** Reads the x402 extension `bazaar` that an endpoint declares in the 402 response of its own server. */
import { isStorable } from '../../storable.ts'
import { valueFault } from './jsonSchema.ts'
import { BAZAAR, type Bazaar, type ServiceWords } from './metadata.ts'
import { distinctTags, iconUrlFault, isRouteTemplate, isWord } from './words.ts'

/** Holds the metadata about a seller's service and the extension `bazaar` from the seller's 402 response. */
export type SeenMetadata = ServiceWords & { bazaar?: Bazaar }

type Json = Record<string, unknown>
const asObject = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}

const REFERENCES = ['$ref', '$id', '$dynamicRef']

/**
 * Tells whether a schema has an external reference, because a program that reads the schema might fetch the referenced
 * URL.
 */
function pointsOutside(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false
  return Object.entries(node).some(
    ([key, value]) =>
      (REFERENCES.includes(key) && !(typeof value === 'string' && value.startsWith('#'))) ||
      pointsOutside(value),
  )
}

/**
 * Reads the x402 extension `bazaar` of a seller. @returns null if the value is no extension `bazaar`, if its info does
 * not follow its schema, or if PostgreSQL cannot store it.
 */
export function readBazaar(value: unknown): Bazaar | null {
  const { info, schema, routeTemplate } = asObject(value)
  const { input } = asObject(info)
  const { type, toolName } = asObject(input)
  const isKnown = type === 'http' || (type === 'mcp' && typeof toolName === 'string')
  if (!isKnown || Object.keys(asObject(schema)).length === 0) return null
  try {
    if (pointsOutside(schema) || valueFault(schema, info) !== null) return null
    if (!isStorable(info) || !isStorable(schema)) return null
  } catch {
    // JSON with thousands of nested levels makes the check throw a RangeError, so the function treats the value as no
    // extension `bazaar`.
    return null
  }
  const template =
    typeof routeTemplate === 'string' && isRouteTemplate(routeTemplate) ? { routeTemplate } : {}
  return { info: asObject(info), schema: asObject(schema), ...template }
}

/**
 * Returns the metadata of an endpoint from a `PAYMENT-REQUIRED` header. The result is empty if the header contains no
 * metadata.
 */
export function readSeen(header: string | undefined): SeenMetadata {
  let challenge: Json
  try {
    challenge = asObject(JSON.parse(Buffer.from(header ?? '', 'base64').toString('utf8')))
  } catch {
    return {}
  }
  const { serviceName, tags, iconUrl } = asObject(challenge.resource)
  const bazaar = readBazaar(asObject(challenge.extensions)[BAZAAR])
  const words = Array.isArray(tags) ? distinctTags(tags.filter(isWord)) : []
  return {
    ...(isWord(serviceName) && { serviceName }),
    ...(words.length > 0 && { tags: words }),
    ...(typeof iconUrl === 'string' && iconUrlFault(iconUrl) === null && { iconUrl }),
    ...(bazaar === null ? {} : { bazaar }),
  }
}
