/**
 * Reads client-id metadata documents. The id of such a client is the URL of its metadata document
 * (draft-ietf-oauth-client-id-metadata-document).
 */
import { type ClientMetadata, ClientMetadataError, readClientMetadata } from './clientMetadata.ts'

const URL_MAX_CHARS = 500
/** Limits the bytes of a document that are read. */
export const DOCUMENT_MAX_BYTES = 5 * 1024
/** A document is cached for this many seconds. Its own header decides within these bounds. */
const FRESH_S = { min: 300, usual: 3_600, max: 86_400 }

/**
 * Tells whether an id may be the URL of a document: https, a path, and no text that two programs could parse
 * differently.
 */
export function isDocumentUrl(id: string): boolean {
  if (id.length > URL_MAX_CHARS || !id.startsWith('https://') || !URL.canParse(id)) return false
  const url = new URL(id)
  return (
    // The parser has changed nothing: the URL has no dot segments, no backslash, and no upper case in the host.
    url.href === id &&
    url.pathname !== '/' &&
    url.hash === '' &&
    !id.includes('#') &&
    url.username === '' &&
    url.password === ''
  )
}

/**
 * Reads a client metadata document.
 * @throws {ClientMetadataError}
 */
export function readClientDocument(url: string, text: string): ClientMetadata {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    throw new ClientMetadataError('invalid_client_metadata', 'the document must be valid JSON')
  }
  const metadata = readClientMetadata(document)
  if ((document as { client_id?: unknown }).client_id !== url) {
    throw new ClientMetadataError(
      'invalid_client_metadata',
      'client_id must be the URL of the document',
    )
  }
  return metadata
}

/** Returns how long a document may be cached, by its `Cache-Control`. */
export function freshSeconds(cacheControl: string | null): number {
  const given = /(?:^|[\s,])max-age=(\d{1,9})/i.exec((cacheControl ?? '').slice(0, 1_000))?.[1]
  const seconds = given === undefined ? FRESH_S.usual : Number(given)
  return Math.min(FRESH_S.max, Math.max(FRESH_S.min, seconds))
}

/**
 * Holds documents that their hosts have published. Some of these hosts do not serve them to a server in a data centre.
 * The draft lets a server know clients beforehand. The documents were read in September 2026.
 */
export const KNOWN_DOCUMENTS: ReadonlyMap<string, ClientMetadata> = new Map([
  [
    'https://claude.ai/oauth/mcp-oauth-client-metadata',
    { name: 'Claude', redirectUris: ['https://claude.ai/api/mcp/auth_callback'] },
  ],
  [
    'https://claude.ai/oauth/claude-code-client-metadata',
    {
      name: 'Claude Code',
      redirectUris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
    },
  ],
  [
    'https://chatgpt.com/oauth/client.json',
    { name: 'ChatGPT', redirectUris: ['https://chatgpt.com/connector_platform_oauth_redirect'] },
  ],
])
