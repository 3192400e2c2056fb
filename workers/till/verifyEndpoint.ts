import { challengePayees, challengeVersions } from '../../shared/till/anyChallenge.ts'
import {
  OPEN_API_BYTES_MAX,
  type OpenApiRead,
  readOpenApi,
  smallerForms,
} from '../../shared/till/bazaar/openApi.ts'
import { readSeen } from '../../shared/till/bazaar/seen.ts'
import { fitsChallenge } from '../../shared/till/x402v2.ts'
import type { Queryable } from '../../sql/db.ts'
import { addJob } from '../../sql/queue/jobs.ts'
import { startEndpointCheck } from '../../sql/till/endpoints/endpointChecks.ts'
import {
  findUrlToVerify,
  recordOpenApi,
  recordVerification,
  type UrlToVerify,
  type VerificationStatus,
} from '../../sql/till/endpoints/endpoints.ts'
import {
  type GuardedResponse,
  guardedRequest,
  type OutboundPolicy,
} from '../http/guardedRequest.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import { askUnpaid } from './emptyCall.ts'

const VERIFY_TIMEOUT_MS = 10_000
const AGAIN_MS = 60 * 60 * 1000

/**
 * Fetches a registered URL without a payment, and records whether the endpoint responds with an x402 challenge. While
 * the endpoint is unreachable, the service offers no new x402 challenge for it. A payment that was already signed
 * continues nevertheless.
 */
export const createVerifyEndpoint =
  ({ pool, lanes }: PoolContext, policy: OutboundPolicy): Task<'verify_endpoint'> =>
  async ({ endpointId }) => {
    const endpoint = await findUrlToVerify(pool, endpointId)
    if (endpoint === null) return
    const { url, projectId, payTo, openApiUrl } = endpoint
    const turn = await lanes.enter(`verify:${projectId}`, projectId)
    if (!turn.granted) {
      return queueAt(pool, endpointId, turn.returnInMs)
    }
    try {
      const startedAt = await startEndpointCheck(pool, endpointId)
      if (startedAt === null) return
      const { answer } = await askUnpaid((call) =>
        guardedRequest({ ...policy, url, timeoutMs: VERIFY_TIMEOUT_MS, ...call }),
      )
      const payees = answer.ok ? challengePayees(answer.bodyPrefix, answer.paymentRequired) : []
      const judgement = judge(answer)
      const seen = readSeen(answer.ok && answer.status === 402 ? answer.paymentRequired : undefined)
      const verdict = { id: endpointId, url, startedAt, ...judgement, payees, seen }
      const checkedAt = await recordVerification(pool, verdict)
      // Either the URL of the endpoint has changed since the start of this check, or a later check sees a newer state
      // of the seller's server. Therefore the result of this check is dropped.
      if (checkedAt === null) return
      if (openApiUrl !== null) {
        await readDocument(pool, policy, { ...endpoint, id: endpointId, openApiUrl, checkedAt })
      }
      // The service offers no x402 challenge for an unreachable endpoint, so it repeats the check until the endpoint
      // responds. This happens, for example, if a seller changes the payTo address here before its server sends the new
      // address.
      const isOfOthers = payTo !== null && payees.length > 0 && !payees.includes(payTo)
      if (judgement.status === 'unreachable' || isOfOthers) {
        // With `keepsTime`, a check that the seller has requested in the meantime keeps its place in the queue and its
        // earlier time.
        await queueAt(pool, endpointId, AGAIN_MS, { keepsTime: true })
      }
    } finally {
      turn.leave()
    }
  }

const queueAt = (db: Queryable, endpointId: string, inMs: number, { keepsTime = false } = {}) =>
  addJob(db, {
    task: 'verify_endpoint',
    payload: { endpointId },
    key: `verify_endpoint:${endpointId}`,
    inMs,
    keepsTime,
  })

/** Reads the OpenAPI document of an endpoint, and stores the parts that an x402 challenge can contain. */
async function readDocument(
  db: Queryable,
  policy: OutboundPolicy,
  {
    id,
    url,
    metadata,
    openApiUrl,
    checkedAt,
  }: UrlToVerify & { id: string; openApiUrl: string; checkedAt: Date },
): Promise<void> {
  const answer = await guardedRequest({
    ...policy,
    url: openApiUrl,
    method: 'GET',
    headers: { accept: 'application/json' },
    timeoutMs: VERIFY_TIMEOUT_MS,
    responseBytesMax: OPEN_API_BYTES_MAX,
  })
  const read = readAnswer(answer, url)
  const fitting =
    'fault' in read
      ? undefined
      : smallerForms(read.metadata).find((form) => fitsChallenge(url, { ...form, ...metadata }))
  const fault = 'fault' in read ? read.fault : 'it does not fit in a challenge'
  const found = fitting === undefined ? { fault, metadata: {} } : { fault: null, metadata: fitting }
  await recordOpenApi(db, { id, url: openApiUrl, checkedAt, ...found })
}

function readAnswer(answer: GuardedResponse, url: string): OpenApiRead {
  if (!answer.ok) return { fault: answer.detail }
  if (answer.status !== 200) return { fault: `answered ${answer.status}, expected 200` }
  if (answer.truncated) return { fault: `the document is longer than ${OPEN_API_BYTES_MAX} bytes` }
  return readOpenApi(answer.bodyPrefix, url)
}

type Judgement = { status: VerificationStatus; detail: string; versions: (1 | 2)[] }

function judge(answer: GuardedResponse): Judgement {
  if (!answer.ok) {
    const status = answer.kind === 'blocked' ? 'failed' : 'unreachable'
    return { status, detail: answer.detail, versions: [] }
  }
  if (answer.status !== 402) {
    return { status: 'failed', detail: `answered ${answer.status}, expected 402`, versions: [] }
  }
  const versions = challengeVersions(answer.bodyPrefix, answer.paymentRequired)
  if (versions.length > 0) {
    return { status: 'verified', detail: 'answered 402 with a challenge', versions }
  }
  const detail =
    'answered 402 without a challenge: x402 version 1 in the body or version 2 in PAYMENT-REQUIRED is expected'
  return { status: 'failed', detail, versions }
}
