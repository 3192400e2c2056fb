import type { TSchema } from '@sinclair/typebox'
import type { ValueError } from '@sinclair/typebox/errors'

/**
 * Returns one sentence about the first error in a request's input, which names the wrong field and its rule. The
 * property `error` of the field's schema holds the text of the rule. Without this property, the limits in the schema
 * give the text.
 */
export function describeValidationError(source: string, first: ValueError | undefined): string {
  if (first === undefined) return `The ${source} is not valid`
  const { path, schema } = first
  const field = path === '' || path === '/root' ? `The ${source}` : fieldName(path)
  return `${field} must ${expectation(schema)}`
}

/** Writes the path of a schema error as a field name. For example, `/to/0` becomes `to[0]`. */
function fieldName(path: string): string {
  return path
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part, n) => (/^\d+$/.test(part) && n > 0 ? `[${part}]` : n > 0 ? `.${part}` : part))
    .join('')
}

function expectation(schema: TSchema): string {
  if (typeof schema.error === 'string') return schema.error
  if (Array.isArray(schema.anyOf)) {
    const literals = schema.anyOf.flatMap((option: TSchema) =>
      'const' in option ? [JSON.stringify(option.const)] : option.type === 'null' ? ['null'] : [],
    )
    if (literals.length === schema.anyOf.length) return `be one of ${literals.join(', ')}`
    const rules = schema.anyOf.map((option: TSchema) => expectation(option))
    const joint = rules.some((rule) => rule.includes(' or ') || rule.includes(','))
      ? ', or '
      : ' or '
    return rules.map((rule, n) => (n === 0 ? rule : rule.replace(/^be /, ''))).join(joint)
  }
  return 'const' in schema ? `be ${JSON.stringify(schema.const)}` : `be ${kind(schema)}`
}

function kind(schema: TSchema): string {
  switch (schema.type) {
    case 'string':
      return `a string${range(schema.minLength, schema.maxLength, 'characters')}`
    case 'array':
      return `an array${range(schema.minItems, schema.maxItems, 'items')}`
    case 'integer':
      return `a whole number${range(schema.minimum, schema.maximum, '')}`
    case 'number':
      return `a number${range(schema.minimum, schema.maximum, '')}`
    case 'boolean':
      return 'true or false'
    case 'null':
      return 'null'
    default:
      return 'a JSON object'
  }
}

function range(low: number | undefined, high: number | undefined, unit: string): string {
  const tail = unit === '' ? '' : ` ${unit}`
  if (low !== undefined && high !== undefined) return ` of ${low} to ${high}${tail}`
  if (low !== undefined) return ` of at least ${low}${tail}`
  return high === undefined ? '' : ` of at most ${high}${tail}`
}
