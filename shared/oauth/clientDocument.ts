/**
 * Reads client-id metadata documents of OAuth. A client with such a document uses the URL of the document as its client
 * id (draft-ietf-oauth-client-id-metadata-document).
 */
import { type ClientMetadata, ClientMetadataError, readClientMetadata } from './clientMetadata.ts'

const URL_MAX_CHARS = 500
/** Sets the maximum number of bytes of a client metadata document that the service reads. */
export const DOCUMENT_MAX_BYTES = 5 * 1024
/**
 * Sets the minimum, usual and maximum seconds for which the service caches a client metadata document. The
 * `Cache-Control` header of the document decides within these limits.
 */
const FRESH_S = { min: 300, usual: 3_600, max: 86_400 }

/**
 * Tells whether a client id may be the URL of a metadata document. The client id must be an https URL with a path, and
 * all programs must parse it in the same way.
 */
export function isDocumentUrl(id: string): boolean {
  if (id.length > URL_MAX_CHARS || !id.startsWith('https://') || !URL.canParse(id)) return false
  const url = new URL(id)
  return (
    // The function accepts a client id only if the URL parser does not change the client id. Therefore an accepted
    // client id has no dot segments, no backslash, and no upper case in the host.
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
 * @throws {ClientMetadataError} if the document is malformed, or if the service cannot accept its metadata.
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

/** Returns the seconds for which the service may cache a client metadata document with the given `Cache-Control`. */
export function freshSeconds(cacheControl: string | null): number {
  const given = /(?:^|[\s,])max-age=(\d{1,9})/i.exec((cacheControl ?? '').slice(0, 1_000))?.[1]
  const seconds = given === undefined ? FRESH_S.usual : Number(given)
  return Math.min(FRESH_S.max, Math.max(FRESH_S.min, seconds))
}

/**
 * Holds copies of client metadata documents, as their owners published them in September 2026. Some hosts refuse to
 * serve their document to a server in a data centre. The draft standard therefore allows an authorization server to
 * know the metadata of some clients in advance.
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
