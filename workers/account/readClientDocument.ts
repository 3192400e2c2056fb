import {
  DOCUMENT_MAX_BYTES,
  freshSeconds,
  readClientDocument,
} from '../../shared/oauth/clientDocument.ts'
import { ClientMetadataError } from '../../shared/oauth/clientMetadata.ts'
import {
  findWantedUrl,
  queueDocument,
  recordDocument,
} from '../../sql/account/oauth/clientDocuments.ts'
import { guardedExchange, headerOf, type OutboundPolicy } from '../http/guardedRequest.ts'
import type { PoolContext, Task } from '../queue/task.ts'

const TIMEOUT_MS = 5_000
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i

/**
 * Fetches the metadata document of an OAuth client from its URL. A stranger chooses this URL, so the guarded HTTP
 * client follows no redirect.
 */
export const createReadClientDocument =
  (
    { pool, lanes }: PoolContext,
    policy: OutboundPolicy & { ca?: string },
  ): Task<'read_client_document'> =>
  async ({ documentId }) => {
    const url = await findWantedUrl(pool, documentId)
    if (url === null) return
    // All fetches of client metadata documents together count as one party in the sharing of the job slots, so that
    // strangers cannot take the job slots of webhooks.
    const turn = await lanes.enter(`client document:${new URL(url).hostname}`, 'client documents')
    if (!turn.granted) return await queueDocument(pool, documentId, turn.returnInMs)
    try {
      await recordDocument(pool, documentId, await fetchDocument(url, policy))
    } finally {
      turn.leave()
    }
  }

async function fetchDocument(url: string, policy: OutboundPolicy & { ca?: string }) {
  const answer = await guardedExchange({
    ...policy,
    url,
    method: 'GET',
    headers: { accept: 'application/json' },
    timeoutMs: TIMEOUT_MS,
    responseBytesMax: DOCUMENT_MAX_BYTES,
  })
  if (!answer.ok) return { fault: answer.detail }
  if (answer.status !== 200) return { fault: `it answers ${answer.status}, not 200` }
  if (answer.truncated) return { fault: `it has more than ${DOCUMENT_MAX_BYTES} bytes` }
  if (!JSON_TYPE.test(headerOf(answer.headers, 'content-type') ?? ''))
    return { fault: 'it is not JSON' }
  try {
    const metadata = readClientDocument(url, answer.body.toString('utf8'))
    return { ...metadata, freshSeconds: freshSeconds(headerOf(answer.headers, 'cache-control')) }
  } catch (error) {
    if (!(error instanceof ClientMetadataError)) throw error
    return { fault: error.message }
  }
}
