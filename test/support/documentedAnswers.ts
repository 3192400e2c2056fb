/** Compares responses of the service with its OpenAPI document. */
import Ajv, { type ValidateFunction } from 'ajv/dist/2020'
import addFormats from 'ajv-formats'
import type { OpenApiDocument, OperationObject } from '../../api/docs/openApi.ts'

type Answered = { method: string; path: string; status: number; body: unknown }

const ajv = addFormats(new Ajv({ strict: false, allErrors: true }))
const validators = new Map<string, ValidateFunction | null>()
let reading: Promise<OpenApiDocument | null> | undefined

/**
 * Returns the differences between an API response and the OpenAPI document: an unknown status, a missing field, an
 * unknown field or a field of another type. Returns no differences if the document does not contain the path.
 */
export async function undocumented(url: string, answered: Answered): Promise<string[]> {
  reading ??= readDocument(url)
  const document = await reading
  if (document === null) reading = undefined
  const found = document === null ? null : findOperation(document, answered)
  if (document === null || found === null) return []
  const { method, status, body } = answered
  const name = `${method} ${found.template} ${status}`
  const response = found.operation.responses[status] as ResponseObject | undefined
  if (response === undefined) return [`${name} is not documented`]
  if (!validators.has(name)) validators.set(name, validatorOf(document, response))
  const validate = validators.get(name)!
  if (validate === null) return body === null ? [] : [`${name} has a body`]
  validate(body)
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) =>
      `${name} ${instancePath} ${message} ${params.additionalProperty ?? ''}`,
  )
}

type ResponseObject = { content?: { 'application/json'?: { schema?: { $ref?: string } } } }

/**
 * Reads the OpenAPI document of a service that runs in this process. @returns null if the service does not respond now
 */
async function readDocument(url: string): Promise<OpenApiDocument | null> {
  const response = await fetch(`${url}/openapi.json`).catch(() => null)
  return response?.ok ? ((await response.json()) as OpenApiDocument) : null
}

function findOperation(
  { paths }: OpenApiDocument,
  { method, path }: Answered,
): { template: string; operation: OperationObject } | null {
  const parts = path.split('?')[0]!.split('/')
  const fits = (template: string): boolean => {
    const wanted = template.split('/')
    return (
      wanted.length === parts.length &&
      wanted.every((part, n) => (part.startsWith('{') ? parts[n] !== '' : part === parts[n]))
    )
  }
  const literal = (template: string) => template.split('{').length
  const [template] = Object.keys(paths)
    .filter(fits)
    .sort((a, b) => literal(a) - literal(b))
  const operation = template === undefined ? undefined : paths[template]![method.toLowerCase()]
  return operation === undefined ? null : { template: template!, operation }
}

function validatorOf(
  { components }: OpenApiDocument,
  { content }: ResponseObject,
): ValidateFunction | null {
  const schema = content?.['application/json']?.schema
  if (schema === undefined) return null
  const { schemas } = components as { schemas: Record<string, object> }
  const name = schema.$ref?.split('/').at(-1)
  return ajv.compile(closed(name === undefined ? schema : schemas[name]!) as object)
}

/** Returns a copy of the JSON schema that forbids unknown fields. */
function closed(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema), (_key, value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const isObject = value.type === 'object' && value.properties !== undefined
    return isObject && value.additionalProperties === undefined
      ? { ...value, additionalProperties: false }
      : value
  })
}
