/**
 * Implements a small part of JSON Schema 2020-12, without references and patterns. The time to check each keyword is
 * proportional to the size of the checked value. A library that compiles whole schemas would run code and regular
 * expressions from an untrusted seller.
 */

/** Describes a fault in a JSON value: the path to the faulty part, and the rule that this part breaks. */
export type SchemaFault = { path: string; must: string }

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']
/** Lists the keywords of JSON Schema that are only notes for human readers and forbid no value. */
const NOTES = new Set(
  [
    '$schema',
    '$comment',
    'title',
    'description',
    'default',
    'example',
    'examples',
    'format',
  ].concat(['deprecated', 'readOnly', 'writeOnly', 'contentMediaType', 'contentEncoding']),
)
const NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum']
const COUNTS = ['minLength', 'maxLength', 'minItems', 'maxItems']

type Json = Record<string, unknown>

/**
 * Tells whether a value of `enum` or `const` is anything other than an object. The check ignores objects in `enum` and
 * `const`, because a comparison with a large object would take long.
 */
const isPlain = (value: unknown): boolean => typeof value !== 'object' || value === null

/** Caches the values of each `enum` as a set, because the check may compare many array items with the same `enum`. */
const choicesOf = new WeakMap<unknown[], Set<unknown>>()

function isChoice(choices: unknown[], value: unknown): boolean {
  const known = choicesOf.get(choices) ?? new Set(choices.every(isPlain) ? choices : [])
  choicesOf.set(choices, known)
  // The check cannot compare a JSON value with the objects of an `enum`. Therefore an `enum` that contains an object
  // allows every value.
  return known.has(value) || (known.size === 0 && choices.length > 0)
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const areTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')
const at = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`)

/**
 * Returns the fault of a JSON Schema if the schema has an unknown keyword or uses a known keyword wrongly. @returns
 * null if {@link valueFault} can check values against every part of the schema.
 */
export function schemaFault(schema: unknown, path = ''): SchemaFault | null {
  if (typeof schema === 'boolean') return null
  if (!isObject(schema)) return { path, must: 'be a JSON Schema: an object or a boolean' }
  for (const [keyword, value] of Object.entries(schema)) {
    const fault = keywordFault(keyword, value, at(path, keyword))
    if (fault !== null) return fault
  }
  return null
}

function keywordFault(keyword: string, value: unknown, path: string): SchemaFault | null {
  const unless = (isRight: boolean, must: string) => (isRight ? null : { path, must })
  if (NOTES.has(keyword)) return null
  if (keyword === 'const') return unless(isPlain(value), 'be a text, a number, a boolean or null')
  if (keyword === 'type') {
    const types = Array.isArray(value) ? value : [value]
    const isRight = types.length > 0 && types.every((one) => TYPES.includes(one))
    return unless(
      isRight && new Set(types).size === types.length,
      `be one or several of ${TYPES.join(', ')}`,
    )
  }
  if (keyword === 'properties') {
    if (!isObject(value)) return { path, must: 'be an object of schemas' }
    return firstOf(Object.entries(value), ([name, inner]) => schemaFault(inner, at(path, name)))
  }
  if (keyword === 'required') {
    const isRight = areTexts(value) && new Set(value).size === value.length
    return unless(isRight, 'be a list of different names')
  }
  if (keyword === 'enum') {
    const isRight = Array.isArray(value) && value.every(isPlain)
    return unless(isRight, 'be a list of texts, numbers, booleans and null')
  }
  if (keyword === 'items' || keyword === 'additionalProperties') return schemaFault(value, path)
  if (NUMBERS.includes(keyword)) return unless(Number.isFinite(value), 'be a number')
  if (COUNTS.includes(keyword)) {
    return unless(Number.isInteger(value) && Number(value) >= 0, 'be a whole number')
  }
  const isReference = keyword.startsWith('$')
  return {
    path,
    must: isReference
      ? 'not stand here: write the schema itself'
      : 'not stand here: this keyword is not known',
  }
}

/**
 * Returns the fault by which a JSON value breaks a schema. Null means that the JSON value follows the schema. The check
 * ignores unknown keywords of the schema.
 * @param schema is any JSON. If the value of a keyword in the schema is malformed, the check ignores the keyword.
 */
export function valueFault(schema: unknown, value: unknown, path = ''): SchemaFault | null {
  if (schema === false) return { path, must: 'not stand here' }
  if (!isObject(schema)) return null
  const { type, const: constant, enum: choices } = schema
  const types = [type].flat().slice(0, TYPES.length)
  if (type !== undefined && !types.some((one) => isOfType(value, one))) {
    return { path, must: `be of the type ${types.join(' or ')}` }
  }
  if (constant !== undefined && isPlain(constant) && constant !== value) {
    return { path, must: `be ${JSON.stringify(constant)}` }
  }
  if (Array.isArray(choices) && !isChoice(choices, value)) {
    return { path, must: 'be one of enum' }
  }
  if (typeof value === 'number') return numberFault(schema, value, path)
  if (typeof value === 'string') return countFault(schema, [...value].length, 'Length', path)
  if (Array.isArray(value)) {
    return (
      countFault(schema, value.length, 'Items', path) ??
      firstOf(value.entries(), ([n, one]) =>
        n < firstItems(schema) ? null : valueFault(schema.items, one, at(path, `${n}`)),
      )
    )
  }
  return isObject(value) ? objectFault(schema, value, path) : null
}

/**
 * Returns how many items at the beginning of an array the keyword `prefixItems` describes. The keyword `items` does not
 * apply to these items (JSON Schema 2020-12 §10.3.1.2).
 */
const firstItems = ({ prefixItems }: Json): number =>
  Array.isArray(prefixItems) ? prefixItems.length : 0

function isOfType(value: unknown, type: unknown): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

function numberFault(schema: Json, value: number, path: string): SchemaFault | null {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema
  if (typeof minimum === 'number' && value < minimum)
    return { path, must: `be at least ${minimum}` }
  if (typeof maximum === 'number' && value > maximum) return { path, must: `be at most ${maximum}` }
  if (typeof above === 'number' && value <= above) return { path, must: `be above ${above}` }
  if (typeof below === 'number' && value >= below) return { path, must: `be below ${below}` }
  return null
}

function countFault(schema: Json, count: number, of: string, path: string): SchemaFault | null {
  const [least, most] = [schema[`min${of}`], schema[`max${of}`]]
  if (typeof least === 'number' && count < least) return { path, must: `have min${of} ${least}` }
  if (typeof most === 'number' && count > most) return { path, must: `have max${of} ${most}` }
  return null
}

function objectFault(schema: Json, value: Json, path: string): SchemaFault | null {
  const { required, properties, additionalProperties } = schema
  const missing = areTexts(required)
    ? required.find((name) => !Object.hasOwn(value, name))
    : undefined
  if (missing !== undefined) return { path: at(path, missing), must: 'be there' }
  const known = isObject(properties) ? properties : {}
  // A property whose name fits a pattern of `patternProperties` is no additional property. The check never runs a
  // seller's patterns. Therefore it accepts every property if the schema has `patternProperties`.
  const others = isObject(schema.patternProperties) ? true : additionalProperties
  return firstOf(Object.entries(value), ([name, inner]) =>
    valueFault(Object.hasOwn(known, name) ? known[name] : others, inner, at(path, name)),
  )
}

function firstOf<One>(all: Iterable<One>, judge: (one: One) => SchemaFault | null) {
  for (const one of all) {
    const fault = judge(one)
    if (fault !== null) return fault
  }
  return null
}
