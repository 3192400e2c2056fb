/** Reads what the own 402 of an endpoint declares. */
import { valueFault } from './jsonSchema.ts'
import { BAZAAR, type Bazaar, type ServiceWords } from './metadata.ts'
import { distinctTags, iconUrlFault, isRouteTemplate, isWord } from './words.ts'

/** The words of a service, and its extension `bazaar`. */
export type SeenMetadata = ServiceWords & { bazaar?: Bazaar }

type Json = Record<string, unknown>
const asObject = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}

const REFERENCES = ['$ref', '$id', '$dynamicRef']

/** Whether a schema points outside of itself: its reader would fetch that. */
function pointsOutside(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false
  return Object.entries(node).some(
    ([key, value]) =>
      (REFERENCES.includes(key) && !(typeof value === 'string' && value.startsWith('#'))) ||
      pointsOutside(value),
  )
}

/** Reads an extension `bazaar`. Null: the value is no such extension, or its info does not follow its schema. */
export function readBazaar(value: unknown): Bazaar | null {
  const { info, schema, routeTemplate } = asObject(value)
  const { input } = asObject(info)
  const { type, toolName } = asObject(input)
  const isKnown = type === 'http' || (type === 'mcp' && typeof toolName === 'string')
  if (!isKnown || Object.keys(asObject(schema)).length === 0) return null
  try {
    if (pointsOutside(schema) || valueFault(schema, info) !== null) return null
  } catch {
    // The RangeError of a text nested thousands deep.
    return null
  }
  const template =
    typeof routeTemplate === 'string' && isRouteTemplate(routeTemplate) ? { routeTemplate } : {}
  return { info: asObject(info), schema: asObject(schema), ...template }
}

/** The declarations in a header `PAYMENT-REQUIRED`; empty when there is none. */
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
