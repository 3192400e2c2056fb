import { isDocumentUrl, KNOWN_DOCUMENTS } from '../../shared/oauth/clientDocument.ts'
import {
  type ClientDocument,
  documentId,
  findDocument,
  wantDocument,
} from '../../sql/account/oauth/clientDocuments.ts'
import { findRegisteredClient, type OAuthClient } from '../../sql/account/oauth/oauthClients.ts'
import { widestNetwork } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { limitNetwork } from './networkLimit.ts'
import { OAuthError } from './oauthError.ts'

const REGISTERED = /^oac_[0-9a-f]{24}$/
/**
 * Sets how many milliseconds a browser waits at most until the service has read the client's metadata, because a worker
 * needs at most 5 s to fetch them.
 */
const WAIT_MS = 8_000

/**
 * Returns the OAuth client that belongs to a client id. An OAuth client is either registered, or its client id is the
 * URL of its metadata document.
 * @throws {OAuthError} for an unknown client, or for a client with unreadable metadata.
 */
export async function findClient(
  services: Services,
  request: Request,
  id: string,
): Promise<OAuthClient> {
  if (REGISTERED.test(id)) {
    const client = await findRegisteredClient(services.pool, id)
    if (client !== null) return client
  }
  if (isDocumentUrl(id)) {
    const known = KNOWN_DOCUMENTS.get(id)
    const { host } = new URL(id)
    if (known !== undefined) return { id, host, ...known }
    const { name, redirectUris } = await readDocument(services, request, id)
    return { id, host, name, redirectUris }
  }
  throw new OAuthError('invalid_client', 'client_id is unknown: let the app register again', 401)
}

/**
 * Returns the current metadata document of an OAuth client. If the database holds no current document, a worker fetches
 * the document.
 */
async function readDocument(
  services: Services,
  request: Request,
  url: string,
): Promise<Extract<ClientDocument, { state: 'ready' }>> {
  const { pool, waiters } = services
  const id = documentId(url)
  const stored = await findDocument(pool, id)
  if (stored?.state === 'ready' && stored.isFresh) return stored
  await limitNetwork(services, request, 'document')
  const watch = waiters.watch(id)
  const deadlineMs = performance.now() + WAIT_MS
  try {
    if (!(await wantDocument(pool, { id, url, network: widestNetwork(request) }))) throw busy()
    for (;;) {
      const document = await findDocument(pool, id)
      if (document?.state === 'ready') return document
      if (document?.state === 'failed') {
        throw new OAuthError(
          'invalid_client',
          `the app's document cannot be used: ${document.fault}`,
        )
      }
      if (!(await watch.changed(deadlineMs))) throw busy()
    }
  } finally {
    watch.close()
  }
}

const busy = () =>
  new OAuthError('temporarily_unavailable', "the app's document cannot be read now: try again", 429)
