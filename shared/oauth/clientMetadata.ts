/** Reads the metadata of an OAuth client, from a registration (RFC 7591) or from a client-id metadata document. */
import { redirectFault } from './redirectUri.ts'

/** Describes an OAuth client. The client itself has chosen the text of `name`, so the text proves nothing. */
export type ClientMetadata = { name: string; redirectUris: string[] }

/**
 * Reports that the service cannot accept the metadata of a client. The error's `code` is an error code of RFC 7591
 * §3.2.2.
 */
export class ClientMetadataError extends Error {
  override readonly name = 'ClientMetadataError'
  readonly code: 'invalid_redirect_uri' | 'invalid_client_metadata'
  constructor(code: ClientMetadataError['code'], message: string) {
    super(message)
    this.code = code
  }
}

const REDIRECTS_MAX = 10
const NAME_MAX_CHARS = 60
/**
 * Matches characters that reorder or hide the text beside them. The consent page must not show them in the name of an
 * OAuth client, because a client could imitate another name.
 */
const UNSHOWN = /[\p{C}\p{Zl}\p{Zp}]/gu

/**
 * Reads the metadata of an OAuth client. The function ignores unknown fields of the client metadata. @throws
 * {ClientMetadataError} if the service cannot accept the metadata.
 */
export function readClientMetadata(value: unknown): ClientMetadata {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid('the metadata must be a JSON object')
  }
  const fields = value as Record<string, unknown>
  const { redirect_uris: uris, token_endpoint_auth_method: method } = fields
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > REDIRECTS_MAX) {
    throw new ClientMetadataError(
      'invalid_redirect_uri',
      `redirect_uris must be a list of 1 to ${REDIRECTS_MAX} URIs`,
    )
  }
  for (const [n, uri] of uris.entries()) {
    const fault = redirectFault(uri)
    if (fault !== null) {
      throw new ClientMetadataError('invalid_redirect_uri', `redirect_uris[${n}] ${fault}`)
    }
  }
  const methods = fields.token_endpoint_auth_methods
  const isPublic =
    method === undefined ||
    method === 'none' ||
    (Array.isArray(methods) && methods.includes('none'))
  if (!isPublic) throw invalid('token_endpoint_auth_method must be none')
  requireNames(fields, 'grant_types', 'authorization_code')
  requireNames(fields, 'response_types', 'code')
  if (fields.client_secret !== undefined) throw invalid('client_secret must be absent')
  return { name: shownName(fields.client_name), redirectUris: uris as string[] }
}

function requireNames(fields: Record<string, unknown>, field: string, name: string): void {
  const value = fields[field]
  if (value !== undefined && !(Array.isArray(value) && value.includes(name))) {
    throw invalid(`${field} must be a list that has ${name}`)
  }
}

const invalid = (message: string) => new ClientMetadataError('invalid_client_metadata', message)

/**
 * Returns the client's name for the consent page in one line. The function cuts a long name, and replaces characters
 * that hide or reorder text by spaces.
 */
function shownName(name: unknown): string {
  if (name === undefined) return ''
  if (typeof name !== 'string') throw invalid('client_name must be a text')
  const line = name.slice(0, 1_000).replace(UNSHOWN, ' ').replace(/\s+/g, ' ').trim()
  return [...line].slice(0, NAME_MAX_CHARS).join('').toWellFormed()
}
