/**
 * Describes the calls of a paid resource for clients and catalogues, in the x402 extension `bazaar` (version 2) and in
 * `outputSchema` (version 1).
 *
 * Standard: x402 specs/extensions/bazaar.md.
 */
import { type SchemaFault, schemaFault, valueFault } from './jsonSchema.ts'

export const BAZAAR = 'bazaar'

const QUERY_METHODS = ['GET', 'HEAD', 'DELETE'] as const
export const BODY_METHODS = ['POST', 'PUT', 'PATCH'] as const
export const METHODS = [...QUERY_METHODS, ...BODY_METHODS]
export const BODY_TYPES = ['json', 'form-data', 'text'] as const
export const TRANSPORTS = ['streamable-http', 'sse'] as const

type Method = (typeof METHODS)[number]
type Json = Record<string, unknown>

/** Lists the parts of an HTTP call for which the metadata hold an example and may hold a schema. */
const HTTP_PARTS = ['queryParams', 'pathParams', 'headers', 'body'] as const
export type HttpPart = (typeof HTTP_PARTS)[number]

/** Describes how a client calls a URL. */
export type HttpInput = {
  method: Method
  queryParams?: Json | undefined
  pathParams?: Json | undefined
  headers?: Json | undefined
  bodyType?: (typeof BODY_TYPES)[number] | undefined
  body?: Json | string | undefined
  /** Holds the JSON Schemas of the parts of an HTTP call, such as the schema of its query. */
  schema?: Partial<Record<HttpPart, unknown>> | undefined
  /** Holds the path of the URL with names for its variable parts, such as `/weather/:city`. */
  routeTemplate?: string | undefined
}

/** Describes how a client calls an MCP tool. */
export type McpInput = {
  inputSchema: Json
  description?: string | undefined
  transport?: (typeof TRANSPORTS)[number] | undefined
  example?: Json | undefined
}

export type Output = { type?: string | undefined; example?: unknown; schema?: unknown }

export type Metadata = {
  serviceName?: string
  tags?: string[]
  iconUrl?: string
  /** Holds the URL of the MCP server that offers the tool. */
  mcpUrl?: string
  input?: HttpInput | McpInput
  output?: Output
}

/** Holds the metadata fields about the seller's service, which the member `resource` of x402 version 2 also has. */
export type ServiceWords = Pick<Metadata, 'serviceName' | 'tags' | 'iconUrl'>

/** Describes the value of `extensions.bazaar` in an x402 challenge. */
export type Bazaar = { info: Json; schema: Json; routeTemplate?: string }

const isBodyMethod = (method: Method): boolean => BODY_METHODS.some((one) => one === method)
const TOOL = 'mcp://tool/'

/** Returns only the metadata fields that describe the seller's service. */
export const serviceWords = ({ serviceName, tags, iconUrl }: Metadata): ServiceWords => ({
  ...(serviceName !== undefined && { serviceName }),
  ...(tags !== undefined && { tags }),
  ...(iconUrl !== undefined && { iconUrl }),
})

/**
 * Returns the extension `bazaar` of a resource. @returns null if the metadata do not describe a call of the resource.
 */
export function bazaarOf({ input, output }: Metadata, url: string): Bazaar | null {
  if (input === undefined) return null
  const built = 'method' in input ? httpInput(input) : mcpInput(input, url.slice(TOOL.length))
  return {
    info: { input: built.info, ...outputInfo(output) },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { input: built.schema, ...outputSchema(output) },
      required: ['input'],
    },
    ...('routeTemplate' in input && input.routeTemplate !== undefined
      ? { routeTemplate: input.routeTemplate }
      : {}),
  }
}

function httpInput(input: HttpInput) {
  const { method, schema = {}, bodyType = 'json' } = input
  const body = isBodyMethod(method) ? { bodyType } : {}
  const examples = HTTP_PARTS.filter((part) => input[part] !== undefined)
  const forms = HTTP_PARTS.filter((part) => (schema[part] ?? input[part]) !== undefined)
  const form = (part: HttpPart) => [
    part,
    schema[part] ?? { type: typeof input[part] === 'string' ? 'string' : 'object' },
  ]
  return {
    info: {
      type: 'http',
      method,
      ...body,
      ...Object.fromEntries(examples.map((part) => [part, input[part]])),
    },
    schema: {
      type: 'object',
      properties: {
        type: { type: 'string', const: 'http' },
        method: { type: 'string', enum: [method] },
        ...(isBodyMethod(method) && { bodyType: { type: 'string', enum: [bodyType] } }),
        ...Object.fromEntries(forms.map(form)),
      },
      required: ['type', 'method', ...Object.keys(body)],
      additionalProperties: false,
    },
  }
}

function mcpInput({ inputSchema, description, transport, example }: McpInput, toolName: string) {
  return {
    info: {
      type: 'mcp',
      toolName,
      ...(description !== undefined && { description }),
      ...(transport !== undefined && { transport }),
      inputSchema,
      ...(example !== undefined && { example }),
    },
    schema: {
      type: 'object',
      properties: {
        type: { type: 'string', const: 'mcp' },
        toolName: { type: 'string' },
        ...(description !== undefined && { description: { type: 'string' } }),
        ...(transport !== undefined && { transport: { type: 'string', enum: [transport] } }),
        inputSchema: { type: 'object' },
        ...(example !== undefined && { example: inputSchema }),
      },
      required: ['type', 'toolName', 'inputSchema'],
      additionalProperties: false,
    },
  }
}

const outputInfo = (output: Output | undefined): Json =>
  output === undefined
    ? {}
    : {
        output: {
          type: output.type ?? 'json',
          ...(output.example !== undefined && { example: output.example }),
        },
      }

const outputSchema = (output: Output | undefined): Json =>
  output === undefined
    ? {}
    : {
        output: {
          type: 'object',
          properties: { type: { type: 'string' }, example: output.schema ?? {} },
          required: ['type'],
        },
      }

/**
 * Returns the fault of a seller's schema, or the fault of an example that does not follow its schema. The path to the
 * fault begins with `input` or `output`.
 */
export function metadataFault({ input, output }: Metadata): SchemaFault | null {
  const http = input !== undefined && 'method' in input ? input : null
  const mcp = input !== undefined && 'inputSchema' in input ? input : null
  const pairs: [string, string, unknown, unknown][] = [
    ...HTTP_PARTS.map((part): [string, string, unknown, unknown] => [
      `input.schema.${part}`,
      `input.${part}`,
      http?.schema?.[part],
      http?.[part],
    ]),
    ['input.inputSchema', 'input.example', mcp?.inputSchema, mcp?.example],
    ['output.schema', 'output.example', output?.schema, output?.example],
  ]
  for (const [schemaPath, path, schema, value] of pairs) {
    if (schema === undefined) continue
    const fault = schemaFault(schema, schemaPath)
    if (fault !== null) return fault
    const wrong = value === undefined ? null : valueFault(schema, value, path)
    if (wrong !== null) return wrong
  }
  return null
}

/**
 * Returns the field `outputSchema` of x402 version 1, which describes only HTTP calls. @returns null if the metadata
 * describe no input and no output.
 */
export function outputSchemaV1({ input, output }: Metadata, discoverable: boolean): Json | null {
  if (input === undefined || !('method' in input)) return null
  const { method, queryParams, pathParams, headers, bodyType = 'json', body } = input
  return {
    input: {
      type: 'http',
      method,
      discoverable,
      ...(queryParams !== undefined && { queryParams }),
      ...(pathParams !== undefined && { pathParams }),
      ...(headers !== undefined && { headerFields: headers }),
      ...(isBodyMethod(method) && { bodyType, bodyFields: body ?? {} }),
    },
    ...(output?.example !== undefined && { output: output.example }),
  }
}
