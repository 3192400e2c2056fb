/** Reads the metadata that a seller gives for an endpoint. */
import { z } from 'zod'
import { jsonFault } from './jsonBounds.ts'
import {
  BODY_METHODS,
  BODY_TYPES,
  type HttpInput,
  type McpInput,
  METHODS,
  type Metadata,
  metadataFault,
  type Output,
  TRANSPORTS,
} from './metadata.ts'
import { isRouteTemplate } from './words.ts'

/** Sets the maximum number of characters of the metadata `input` and `output`, which must fit into a header of 3 kB. */
const PART_CHARS_MAX = 2_048

const json = z.record(z.string(), z.unknown(), { error: 'be an object' })
const oneOf = (words: readonly string[]) => ({ error: `be one of ${words.join(', ')}` })

const httpSchema = z
  .strictObject({
    method: z.enum(METHODS, oneOf(METHODS)),
    queryParams: json.optional(),
    pathParams: json.optional(),
    headers: json.optional(),
    bodyType: z.enum(BODY_TYPES, oneOf(BODY_TYPES)).optional(),
    body: z.union([json, z.string()], { error: 'be an object or a text' }).optional(),
    schema: z
      .strictObject({
        queryParams: z.unknown(),
        pathParams: z.unknown(),
        headers: z.unknown(),
        body: z.unknown(),
      })
      .partial()
      .optional(),
    routeTemplate: z
      .string()
      .refine(isRouteTemplate, {
        error: 'begin with / and hold no .., no :// and no blanks, as in /weather/:city',
      })
      .optional(),
  })
  .refine(
    ({ method, body, bodyType }) =>
      BODY_METHODS.some((one) => one === method) || (body ?? bodyType) === undefined,
    { path: ['body'], error: `come with the method ${BODY_METHODS.join(', ')}` },
  )
  .refine(
    ({ body, bodyType }) =>
      body === undefined || (typeof body === 'string') === (bodyType === 'text'),
    {
      path: ['body'],
      error: 'be a text where bodyType is text, and else an object',
    },
  )

const mcpSchema = z.strictObject({
  inputSchema: json,
  description: z
    .string({ error: 'be a text' })
    .max(450, { error: 'be at most 450 characters' })
    .optional(),
  transport: z.enum(TRANSPORTS, oneOf(TRANSPORTS)).optional(),
  example: json.optional(),
})

const outputSchema = z.strictObject({
  type: z.string({ error: 'be a text' }).max(64, { error: 'be at most 64 characters' }).optional(),
  example: z.unknown().optional(),
  schema: z.unknown().optional(),
})

type Read<Value> = { value: Value } | { fault: string }

function read<Value>(schema: z.ZodType<Value>, field: string, value: unknown): Read<Value> {
  const tooMuch = jsonFault(value, PART_CHARS_MAX)
  if (tooMuch !== null) return { fault: `${field} ${tooMuch}` }
  const { data, error } = schema.safeParse(value)
  if (error === undefined) return { value: data }
  const { path, message, ...issue } = error.issues[0]!
  const name = [field, ...path].join('.')
  if (issue.code === 'unrecognized_keys') {
    return { fault: `${name} must not hold ${JSON.stringify(issue.keys[0])}` }
  }
  return { fault: `${name} must ${/^(?:be|begin|come) /.test(message) ? message : 'be an object'}` }
}

/** Reads the metadata field `input`, which tells how clients call a URL or an MCP tool. */
export const readInput = (value: unknown, isMcp: boolean): Read<HttpInput | McpInput> =>
  isMcp
    ? read<McpInput>(mcpSchema, 'input', value)
    : read<HttpInput>(httpSchema as z.ZodType<HttpInput>, 'input', value)

/** Reads the metadata field `output`, which describes the seller's response. */
export const readOutput = (value: unknown): Read<Output> =>
  read<Output>(outputSchema, 'output', value)

/**
 * Returns a sentence about a fault in the schemas and examples of an endpoint's metadata. @returns null if each example
 * follows its schema.
 */
export function examplesFault(metadata: Metadata): string | null {
  const fault = metadataFault(metadata)
  return fault === null ? null : `${fault.path} must ${fault.must}`
}
