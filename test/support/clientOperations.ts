/**
 * Writes api/client/operations.ts, which contains the calls of the API client and their types, from the OpenAPI
 * document.
 */
import type { OpenApiDocument, OperationObject } from '../../api/docs/openApi.ts'

type Schema = Record<string, any>

/** Lists the API operations without a client method, each with the reason. */
const LEFT_OUT: readonly [RegExp, string][] = [
  [/^\/v0\/platform\/identities/, 'the alias of /v0/platform/projects'],
  [/^\/v0\/x402\//, 'for sellers with their own x402 middleware'],
  [/^\/(?!v0\/)/, 'health, documentation and keys: no JSON API behind a key'],
]

/** Returns the text of the generated module api/client/operations.ts. */
export function clientOperations(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths)
    .filter(([path]) => !LEFT_OUT.some(([pattern]) => pattern.test(path)))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    )
    .sort((a, b) => (a.operation.operationId < b.operation.operationId ? -1 : 1))
  const routes = operations.map(
    ({ path, method, operation }) =>
      `  ${operation.operationId}: ['${method.toUpperCase()}', '${path}', '${answersBytes(operation) ? 'bytes' : 'json'}'],`,
  )
  const types = operations.map(
    ({ operation }) =>
      `  /** ${operation.summary}. */\n  ${operation.operationId}: { input: ${input(operation)}; result: ${result(operation)} }`,
  )
  const keyed = operations
    .filter(({ operation: { parameters = [] } }) =>
      parameters.some(({ name }) => name === 'Idempotency-Key'),
    )
    .map(({ operation }) => `  '${operation.operationId}',`)
  return `/**
 * Every operation: method, path, form of the answer, input type, result type. \`npm run client:operations\` generates this
 * file from /openapi.json; a test fails when they differ.
 */
export const OPERATIONS = {
${routes.join('\n')}
} as const

/** Lists the operations that answer a repeated Idempotency-Key with the first answer. */
export const KEYED: ReadonlySet<string> = new Set([
${keyed.join('\n')}
])

/** Describes the input and the result of each API operation. */
export type Operations = {
${types.join('\n')}
}
`
}

function input({ parameters = [], requestBody }: OperationObject): string {
  const members = (['path', 'query'] as const).flatMap((place) => {
    const own = parameters.filter((parameter) => parameter.in === place)
    if (own.length === 0) return []
    const fields = own.map(({ name, required, description, schema }) =>
      field(String(name), schema as Schema, {
        required: required === true,
        description,
        isInput: true,
      }),
    )
    const isOptional = !own.some(({ required }) => required === true)
    return [`${place}${isOptional ? '?' : ''}: { ${fields.join('; ')} }`]
  })
  const body = (requestBody as Schema | undefined)?.content['application/json'].schema
  if (body !== undefined) members.push(`body: ${type(body, true)}`)
  return members.length === 0 ? 'Record<never, never>' : `{ ${members.join('; ')} }`
}

function success({ responses }: OperationObject): Schema {
  return Object.entries(responses).find(([status]) => status.startsWith('2'))![1] as Schema
}

/** Tells whether an API operation responds with bytes instead of JSON. */
function answersBytes(operation: OperationObject): boolean {
  const { content } = success(operation)
  return content !== undefined && !('application/json' in content)
}

function result(operation: OperationObject): string {
  if (answersBytes(operation)) return 'ArrayBuffer'
  const schema = success(operation).content?.['application/json'].schema
  return schema === undefined ? 'void' : type(schema, false)
}

function field(
  name: string,
  schema: Schema,
  { required, description, isInput }: { required: boolean; description: unknown; isInput: boolean },
): string {
  const text = description ?? schema.description
  const comment = text === undefined ? '' : `/** ${String(text).replaceAll('*/', '* /')} */ `
  const orUndefined = isInput && !required ? ' | undefined' : ''
  const member = /^\w+$/.test(name) ? name : JSON.stringify(name)
  return `${comment}${member}${required ? '' : '?'}: ${type(schema, isInput)}${orUndefined}`
}

function type(schema: Schema, isInput: boolean): string {
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.anyOf !== undefined) {
    return schema.anyOf.map((option: Schema) => type(option, isInput)).join(' | ')
  }
  if (schema.enum !== undefined)
    return schema.enum.map((value: unknown) => JSON.stringify(value)).join(' | ')
  if (Array.isArray(schema.type)) return schema.type.join(' | ')
  switch (schema.type) {
    case 'array': {
      const item = type(schema.items, isInput)
      return /[|]/.test(item) && !item.startsWith('{') ? `(${item})[]` : `${item}[]`
    }
    case 'integer':
    case 'number':
      return 'number'
    case 'object': {
      const fields = Object.entries((schema.properties ?? {}) as Record<string, Schema>).map(
        ([name, property]) =>
          field(name, property, {
            required: (schema.required ?? []).includes(name),
            description: undefined,
            isInput,
          }),
      )
      if (fields.length > 0) return `{ ${fields.join('; ')} }`
      const { additionalProperties: values } = schema
      return `Record<string, ${typeof values === 'object' ? type(values, isInput) : 'unknown'}>`
    }
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type
    default:
      return 'unknown'
  }
}
