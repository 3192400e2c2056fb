/** Turns a schema of an OpenAPI document into a small schema without references. */
import { schemaFault } from './jsonSchema.ts'

type Json = Record<string, unknown>

const KEPT = ['type', 'required', 'enum', 'const', 'minimum', 'maximum', 'exclusiveMinimum'].concat(
  ['exclusiveMaximum', 'minLength', 'maxLength', 'minItems', 'maxItems'],
)
/**
 * DEPTH_MAX limits the depth of nested schemas, and SCHEMAS_MAX limits their number. A schema beyond these limits
 * becomes a schema that allows anything.
 */
const DEPTH_MAX = 6
const SCHEMAS_MAX = 200
const REFERENCES_MAX = 8
/** Sets the maximum number of items of `required` and of `enum` in a schema. */
const LIST_MAX = 100

const asObject = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}

/**
 * Returns a form of a schema with only known keywords and without references. If the function cannot keep a part of the
 * schema, this part becomes a schema that allows anything.
 * @param root is the whole OpenAPI document, into which the references of the schema point.
 */
export function readSchema(root: Json, schema: unknown): Json {
  let left = SCHEMAS_MAX
  const read = (given: unknown, depth: number): Json => {
    if (depth > DEPTH_MAX || --left < 0) return {}
    const found = followed(root, given)
    const kept: Json = {}
    for (const keyword of KEPT) {
      const value = found[keyword]
      if (value === undefined || (Array.isArray(value) && value.length > LIST_MAX)) continue
      if (schemaFault({ [keyword]: value }) === null) kept[keyword] = value
    }
    // The function turns the flag `nullable` of OpenAPI 3.0 into a list of types, as in OpenAPI 3.1.
    if (found.nullable === true && typeof kept.type === 'string') kept.type = [kept.type, 'null']
    const properties = entriesOf(asObject(found.properties))
    if (properties.length > 0) {
      kept.properties = Object.fromEntries(
        properties
          .slice(0, Math.max(left, 0))
          .map(([name, inner]) => [name, read(inner, depth + 1)]),
      )
    }
    // Beside `prefixItems`, the keyword `items` describes only the later items. The copied schema has no `prefixItems`.
    // If it kept `items`, it would wrongly refuse the first items.
    const describesAll = found.items !== undefined && found.prefixItems === undefined
    if (describesAll) kept.items = read(found.items, depth + 1)
    return kept
  }
  return read(schema, 0)
}

/**
 * Caches the first entries (names and values) of each object in the schema, because many references may point to the
 * same object.
 */
const firstEntries = new WeakMap<Json, [string, unknown][]>()

function entriesOf(object: Json): [string, unknown][] {
  const entries = firstEntries.get(object) ?? Object.entries(object).slice(0, SCHEMAS_MAX)
  firstEntries.set(object, entries)
  return entries
}

function followed(root: Json, given: unknown): Json {
  let found = asObject(given)
  for (let n = 0; typeof found.$ref === 'string' && n < REFERENCES_MAX; n++) {
    const key = /^#\/components\/schemas\/([^/]+)$/.exec(found.$ref)?.[1]
    const schemas = asObject(asObject(root.components).schemas)
    found = key !== undefined && Object.hasOwn(schemas, key) ? asObject(schemas[key]) : {}
  }
  return typeof found.$ref === 'string' ? {} : found
}
