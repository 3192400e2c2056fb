import { type Static, Type as t } from '@sinclair/typebox'
import type { Metadata } from '../../../shared/till/bazaar/metadata.ts'
import { examplesFault, readInput, readOutput } from '../../../shared/till/bazaar/readMetadata.ts'
import {
  distinctTags,
  ICON_URL_MAX_LENGTH,
  iconUrlFault,
  TAGS_MAX,
  WORD_PATTERN,
} from '../../../shared/till/bazaar/words.ts'
import { isMcpTool } from '../../../shared/till/resourceUrl.ts'
import { fitsChallenge } from '../../../shared/till/x402v2.ts'
import type { EndpointChange, MetadataChange } from '../../../sql/till/endpoints/endpointChanges.ts'
import type { Endpoint } from '../../../sql/till/endpoints/endpoints.ts'
import { badRequest } from '../../http/errors.ts'
import type { Services } from '../../http/services.ts'
import { readOutboundUrl } from './endpointInput.ts'

const WORD_RULE = 'be 1 to 32 printable ASCII characters'
const Word = t.String({ pattern: WORD_PATTERN, error: WORD_RULE })
const OrNull = <Schema extends Parameters<typeof t.Union>[0][number]>(
  schema: Schema,
  options: object = {},
) => t.Optional(t.Union([schema, t.Null()], options))
const Part = (description: string) =>
  OrNull(t.Object({}, { additionalProperties: true }), {
    description,
    error: 'be an object or null',
  })

/**
 * Describes the request fields that tell how buyers call an endpoint and how the public list of paid resources shows
 * the endpoint.
 */
export const LISTING_FIELDS = {
  serviceName: OrNull(Word, {
    description: 'Lists show your service under this name.',
    error: `${WORD_RULE}, or null`,
  }),
  tags: OrNull(t.Array(Word, { maxItems: TAGS_MAX }), {
    description: 'Buyers find the endpoint by these words.',
    error: `be at most ${TAGS_MAX} texts of 1 to 32 printable ASCII characters, or null`,
  }),
  iconUrl: OrNull(t.String({ maxLength: ICON_URL_MAX_LENGTH }), {
    error: `be a URL of at most ${ICON_URL_MAX_LENGTH} characters, or null`,
  }),
  mcpUrl: OrNull(t.String({ minLength: 1, maxLength: 2_048 }), {
    description: 'This MCP server has the tool. A tool needs this URL to be discoverable.',
    error: 'be a URL of at most 2048 characters, or null',
  }),
  input: Part(
    'The input of a URL has a method, and examples as queryParams, pathParams, headers, bodyType and body. `schema` holds ' +
      'their JSON Schemas by the same names. `routeTemplate` is the path with names, such as /weather/:city. The input of an ' +
      'MCP tool has inputSchema, description, transport and example.',
  ),
  output: Part(
    'The output has a `type` (json), an `example`, and a `schema`, which is the JSON Schema of the example.',
  ),
  openApiUrl: OrNull(t.String({ minLength: 1, maxLength: 2_048 }), {
    description:
      'This URL is an OpenAPI 3 document (JSON), which describes the endpoint. A worker reads the document. The fields above take precedence over the document.',
    error: 'be a URL of at most 2048 characters, or null',
  }),
}

const Body = t.Object({ ...LISTING_FIELDS, discoverable: t.Optional(t.Boolean()) })
type ListingBody = Static<typeof Body>
type Stored = Pick<Endpoint, 'metadata' | 'openApi' | 'discoverable'>

const PARTS = ['serviceName', 'tags', 'iconUrl', 'mcpUrl', 'input', 'output'] as const

/** Tells whether a request body holds any field that {@link readListing} reads. */
export const hasListing = (body: ListingBody): boolean =>
  body.discoverable !== undefined ||
  Object.keys(LISTING_FIELDS).some((name) => body[name as keyof ListingBody] !== undefined)

/**
 * Reads the request fields that tell how buyers call an endpoint and how the public list of paid resources shows it.
 * These fields and the stored fields must together fit into one payment challenge.
 * @throws {ApiError} 400 for invalid fields, or for fields that do not fit into a payment challenge.
 */
export function readListing(
  { config }: Services,
  { url, body, stored }: { url: string; body: ListingBody; stored: Stored | null },
): Pick<EndpointChange, 'metadata' | 'openApiUrl'> {
  const isMcp = isMcpTool(url)
  const metadata = readParts(body, isMcp)
  const openApiUrl = readOpenApiUrl(body.openApiUrl, isMcp, config.allowPrivateNetworks)
  if (body.mcpUrl) {
    if (!isMcp) throw badRequest('mcpUrl must come with an MCP tool: urlPattern is a URL')
    metadata.mcpUrl = readOutboundUrl('mcpUrl', body.mcpUrl, config.allowPrivateNetworks)
  }
  const whole = wholeOf(stored, metadata, openApiUrl)
  if ((body.discoverable ?? stored?.discoverable) && isMcp && whole.mcpUrl === undefined) {
    throw badRequest(
      'discoverable must come with mcpUrl for an MCP tool: an agent looks for its server',
    )
  }
  const fault = examplesFault(whole)
  if (fault !== null) throw badRequest(fault)
  const isNew = Object.keys(metadata).length > 0
  if (isNew && !fitsChallenge(url, whole)) {
    throw badRequest(
      'input, output, tags, serviceName and iconUrl must be shorter: a challenge stands in a header of 2,990 characters',
    )
  }
  return {
    ...(isNew && { metadata }),
    ...(openApiUrl === undefined ? {} : { openApiUrl }),
  }
}

function readParts(body: ListingBody, isMcp: boolean): MetadataChange {
  const metadata: MetadataChange = {}
  for (const part of PARTS) if (body[part] === null) metadata[part] = null
  if (body.serviceName) metadata.serviceName = body.serviceName
  if (body.tags) metadata.tags = distinctTags(body.tags)
  if (body.iconUrl) {
    const fault = iconUrlFault(body.iconUrl)
    if (fault !== null) throw badRequest(`iconUrl must ${fault}`)
    metadata.iconUrl = body.iconUrl
  }
  if (body.input) metadata.input = checked(readInput(body.input, isMcp))
  if (body.output) metadata.output = checked(readOutput(body.output))
  return metadata
}

function checked<Value>(read: { value: Value } | { fault: string }): Value {
  if ('fault' in read) throw badRequest(read.fault)
  return read.value
}

function readOpenApiUrl(
  given: string | null | undefined,
  isMcp: boolean,
  allowPrivate: boolean,
): string | null | undefined {
  if (typeof given !== 'string') return given
  if (isMcp) throw badRequest('openApiUrl must come with a URL: an MCP tool has no path')
  return readOutboundUrl('openApiUrl', given, allowPrivate)
}

/** Returns the metadata for the endpoint's next payment challenge: the stored metadata with the requested changes. */
function wholeOf(
  stored: Stored | null,
  change: MetadataChange,
  openApiUrl: string | null | undefined,
): Metadata {
  const own = Object.entries({ ...stored?.metadata, ...change }).filter(([, one]) => one !== null)
  const isKept = openApiUrl === undefined || openApiUrl === stored?.openApi?.url
  return { ...(isKept ? stored?.openApi?.metadata : {}), ...Object.fromEntries(own) }
}
