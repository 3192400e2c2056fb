/**
 * Reads the description of one URL's calls from a seller's OpenAPI 3 document.
 *
 * Standard: OpenAPI Specification 3.0 and 3.1. The code follows references within the OpenAPI document, and ignores
 * references to other documents.
 */
import { isStorable } from '../../storable.ts'
import { jsonFault } from './jsonBounds.ts'
import { valueFault } from './jsonSchema.ts'
import { type HttpInput, type HttpPart, METHODS, type Metadata, type Output } from './metadata.ts'
import { readSchema } from './openApiSchema.ts'
import { distinctTags, isWord } from './words.ts'

/** Sets the maximum number of bytes that the service reads of an OpenAPI document. */
export const OPEN_API_BYTES_MAX = 1024 * 1024

const SERVERS_MAX = 5
const PATHS_MAX = 5_000
const PARAMETERS_MAX = 30

type Json = Record<string, unknown>

const asObject = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** Holds the metadata of a URL from an OpenAPI document, or the reason why the document has none for this URL. */
export type OpenApiRead = { metadata: Metadata } | { fault: string }

/**
 * Reads the metadata of one URL from an OpenAPI document.
 * @param text is the OpenAPI document in JSON.
 * @param url is the URL of the seller's endpoint.
 */
export function readOpenApi(text: string, url: string): OpenApiRead {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return { fault: 'the document is not JSON' }
  }
  const root = asObject(parsed)
  if (typeof root.openapi !== 'string' || !root.openapi.startsWith('3.')) {
    return { fault: 'the document is not OpenAPI 3' }
  }
  const found = findPath(root, new URL(url).pathname)
  if (found === null) return { fault: 'the document has no path for this URL' }
  const method = METHODS.find((one) => found.item[one.toLowerCase()] !== undefined)
  if (method === undefined) return { fault: 'the path has no method that can be called' }
  const operation = asObject(found.item[method.toLowerCase()])
  const parameters = [...asList(found.item.parameters), ...asList(operation.parameters)]
  const call = callOf(root, parameters.slice(0, PARAMETERS_MAX), found.pathParams)
  const hasBody = method !== 'GET' && method !== 'HEAD' && method !== 'DELETE'
  const body = hasBody ? bodyOf(root, operation) : {}
  const schema = { ...call.schema, ...body.schema }
  const input: HttpInput = {
    method,
    ...call,
    ...body,
    ...(Object.keys(schema).length > 0 && { schema }),
    ...(found.template === null ? {} : { routeTemplate: found.template }),
  }
  const { title } = asObject(root.info)
  const tags = distinctTags(asList(operation.tags).filter(isWord))
  const output = outputOf(root, operation)
  const metadata: Metadata = {
    ...(isWord(title) && { serviceName: title }),
    ...(tags.length > 0 && { tags }),
    input,
    ...(output === null ? {} : { output }),
  }
  return isStorable(metadata)
    ? { metadata }
    : { fault: 'the document holds a null character or broken Unicode' }
}

type FoundPath = { item: Json; template: string | null; pathParams: Record<string, string> }

/**
 * Finds the entry of a path in an OpenAPI document. A path without variable parts takes precedence over a path template
 * (OpenAPI 3.1 §4.8.8).
 */
function findPath(root: Json, pathname: string): FoundPath | null {
  const servers = asList(root.servers).slice(0, SERVERS_MAX)
  const bases = new Set([...servers.map((server) => basePath(asObject(server))), ''])
  const wanted = pathname.split('/')
  let templated: FoundPath | null = null
  for (const [path, item] of Object.entries(asObject(root.paths)).slice(0, PATHS_MAX)) {
    const sent = inUrl(path)
    for (const base of bases) {
      const pathParams = matchPath(`${base}${sent}`, wanted)
      if (pathParams === null) continue
      if (Object.keys(pathParams).length === 0)
        return { item: readReference(root, item), template: null, pathParams }
      const template = `${base}${sent}`.replace(/\{([\w.-]+)\}/g, ':$1')
      templated ??= { item: readReference(root, item), template, pathParams }
    }
  }
  return templated
}

/** Writes a path in the form of a URL, with percent codes for blanks and non-ASCII characters. */
const inUrl = (path: string): string =>
  path.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent)

const SERVER_CHARS_MAX = 2_048

/** Returns the path in a server's URL. Each variable in the URL gets its default value (OpenAPI 3.1 §4.8.6). */
function basePath({ url: given, variables }: Json): string {
  if (typeof given !== 'string' || given.length > SERVER_CHARS_MAX) return ''
  const known = asObject(variables)
  const url = given.replace(/\{([^{}]+)\}/g, (whole, name: string) => {
    const usual = Object.hasOwn(known, name) ? asObject(known[name]).default : undefined
    return typeof usual === 'string' && usual.length <= SERVER_CHARS_MAX ? usual : whole
  })
  if (!URL.canParse(url, 'https://server.invalid')) return ''
  return new URL(url, 'https://server.invalid').pathname.replace(/\/$/, '')
}

/**
 * Returns the values that the variable parts of a path template have in a path. @returns null if the path does not
 * match the template.
 */
function matchPath(template: string, wanted: readonly string[]): Record<string, string> | null {
  const parts = template.split('/')
  if (parts.length !== wanted.length) return null
  const values: Record<string, string> = {}
  for (const [n, part] of parts.entries()) {
    const name = /^\{([\w.-]+)\}$/.exec(part)?.[1]
    if (name !== undefined && wanted[n] !== '') values[name] = wanted[n]!
    else if (part !== wanted[n]) return null
  }
  return values
}

const PLACES = new Map<unknown, HttpPart>([
  ['query', 'queryParams'],
  ['path', 'pathParams'],
  ['header', 'headers'],
])

/**
 * Returns the examples and schemas of an operation's parameters. They are grouped by the part of the HTTP request, such
 * as the query.
 */
function callOf(root: Json, parameters: readonly unknown[], pathParams: Record<string, string>) {
  const examples: Partial<Record<HttpPart, Json>> = {}
  const forms: Partial<Record<HttpPart, { properties: Json; required: string[] }>> = {}
  // A parameter of the operation replaces a parameter of the same name that belongs to the whole path (OpenAPI 3.1
  // §4.8.10).
  const own = new Map<string, { part: HttpPart; name: string; parameter: Json }>()
  for (const given of parameters) {
    const parameter = readReference(root, given)
    const part = PLACES.get(parameter.in)
    const { name } = parameter
    if (part === undefined || typeof name !== 'string' || name === '__proto__') continue
    own.set(`${part} ${name}`, { part, name, parameter })
  }
  for (const { part, name, parameter } of own.values()) {
    const schema = readSchema(root, parameter.schema)
    forms[part] ??= { properties: {}, required: [] }
    forms[part].properties[name] = schema
    if (parameter.required === true) forms[part].required.push(name)
    const example = part === 'pathParams' ? pathParams[name] : exampleOf(root, parameter)
    // The example of a path parameter is always a text, because the example comes from the path of the URL.
    if (part === 'pathParams' ? example !== undefined : isExample(schema, example)) {
      examples[part] = { ...examples[part], [name]: example }
    }
  }
  const schema: Partial<Record<HttpPart, unknown>> = {}
  for (const [part, { properties, required }] of Object.entries(forms) as [
    HttpPart,
    { properties: Json; required: string[] },
  ][]) {
    if (part === 'pathParams') continue
    schema[part] = { type: 'object', properties, ...(required.length > 0 && { required }) }
    if (valueFault(schema[part], examples[part] ?? {}) !== null) delete examples[part]
  }
  return { ...examples, ...(Object.keys(schema).length > 0 && { schema }) }
}

const BODIES: [string, NonNullable<HttpInput['bodyType']>][] = [
  ['application/json', 'json'],
  ['multipart/form-data', 'form-data'],
  ['application/x-www-form-urlencoded', 'form-data'],
  ['text/plain', 'text'],
]

function bodyOf(root: Json, operation: Json): Partial<HttpInput> {
  const content = asObject(readReference(root, operation.requestBody).content)
  const found = BODIES.find(([type]) => content[type] !== undefined)
  if (found === undefined) return { bodyType: 'json' }
  const [type, bodyType] = found
  const media = asObject(content[type])
  const schema = readSchema(root, media.schema)
  const example = exampleOf(root, media)
  const isRight =
    bodyType === 'text'
      ? typeof example === 'string'
      : typeof example === 'object' && example !== null && !Array.isArray(example)
  return {
    bodyType,
    ...(isRight && isExample(schema, example) ? { body: example as Json | string } : {}),
    schema: { body: schema },
  }
}

function outputOf(root: Json, operation: Json): Output | null {
  const responses = asObject(operation.responses)
  const status = Object.keys(responses).find((one) => /^2/.test(one))
  if (status === undefined) return null
  const content = asObject(readReference(root, responses[status]).content)
  const json = content['application/json']
  if (json === undefined) return null
  const schema = readSchema(root, asObject(json).schema)
  const example = exampleOf(root, asObject(json))
  return { type: 'json', ...(isExample(schema, example) && { example }), schema }
}

const EXAMPLE_CHARS_MAX = 2_048

const isExample = (schema: Json, value: unknown): boolean =>
  value !== undefined &&
  jsonFault(value, EXAMPLE_CHARS_MAX) === null &&
  valueFault(schema, value) === null

/**
 * Returns an example for a parameter or body of an OpenAPI document. The function prefers the `example`, then the first
 * of the `examples`, and otherwise takes an example from the schema.
 */
function exampleOf(root: Json, of: Json): unknown {
  const several = Object.values(asObject(of.examples))[0]
  const { example, default: usual, examples } = readReference(root, of.schema)
  return of.example ?? readReference(root, several).value ?? example ?? asList(examples)[0] ?? usual
}

/**
 * Returns an object of an OpenAPI document. If the object is a reference, the function returns the object that the
 * reference names.
 */
function readReference(root: Json, value: unknown): Json {
  const object = asObject(value)
  return typeof object.$ref === 'string' ? asObject(pointed(root, object.$ref)) : object
}

const POINTER_PARTS_MAX = 10

/** Returns the part of an OpenAPI document that a local reference names (RFC 6901). */
function pointed(root: Json, reference: string): unknown {
  if (!reference.startsWith('#/')) return undefined
  let found: unknown = root
  for (const part of reference.slice(2).split('/', POINTER_PARTS_MAX)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    const object = asObject(found)
    found = Object.hasOwn(object, key) ? object[key] : undefined
  }
  return found
}

/**
 * Returns the complete metadata, followed by ever shorter forms. An x402 challenge uses the first form that fits into
 * its header.
 */
export function smallerForms(metadata: Metadata): Metadata[] {
  const { input, output, ...words } = metadata
  if (input === undefined || !('method' in input)) return [metadata]
  const { schema, ...bare } = input
  const shown = output?.example === undefined ? {} : { output: { example: output.example } }
  return [
    metadata,
    { ...words, input, ...shown },
    { ...words, input },
    { ...words, input: bare },
    { ...words, input: { method: input.method } },
  ]
}
