import { challengePayees } from '../../shared/till/challengePayees.ts'
import { addJob } from '../../sql/queue/jobs.ts'
import {
  findUrlToVerify,
  recordVerification,
  type VerificationStatus,
} from '../../sql/till/endpoints.ts'
import {
  type GuardedResponse,
  guardedRequest,
  type OutboundPolicy,
} from '../http/guardedRequest.ts'
import type { PoolContext, Task } from '../queue/task.ts'

const VERIFY_TIMEOUT_MS = 10_000

/**
 * Fetches a registered URL without a payment, and records whether it answers with a challenge. The verdict informs the
 * seller; it stops no payment.
 */
export const createVerifyEndpoint =
  ({ pool, lanes }: PoolContext, policy: OutboundPolicy): Task<'verify_endpoint'> =>
  async ({ endpointId }) => {
    const endpoint = await findUrlToVerify(pool, endpointId)
    if (endpoint === null) return
    const { url, projectId } = endpoint
    const turn = await lanes.enter(`verify:${projectId}`, projectId)
    if (!turn.granted) {
      return addJob(pool, {
        task: 'verify_endpoint',
        payload: { endpointId },
        key: `verify_endpoint:${endpointId}`,
        runAt: new Date(Date.now() + turn.returnInMs),
      })
    }
    try {
      const answer = await guardedRequest({
        ...policy,
        url,
        method: 'GET',
        timeoutMs: VERIFY_TIMEOUT_MS,
      })
      const payees = answer.ok ? challengePayees(answer.bodyPrefix) : []
      await recordVerification(pool, { id: endpointId, url, ...judge(answer), payees })
    } finally {
      turn.leave()
    }
  }

function judge(answer: GuardedResponse): { status: VerificationStatus; detail: string } {
  if (!answer.ok) {
    const status = answer.kind === 'blocked' ? 'failed' : 'unreachable'
    return { status, detail: answer.detail }
  }
  if (answer.status !== 402) {
    return { status: 'failed', detail: `answered ${answer.status}, expected 402` }
  }
  if (!isChallenge(answer.bodyPrefix)) {
    return {
      status: 'failed',
      detail: 'answered 402 without a challenge: x402Version and a non-empty accepts are expected',
    }
  }
  return { status: 'verified', detail: 'answered 402 with a challenge' }
}

function isChallenge(text: string): boolean {
  try {
    const body = JSON.parse(text)
    return (
      Number.isInteger(body?.x402Version) && Array.isArray(body.accepts) && body.accepts.length > 0
    )
  } catch {
    return false
  }
}
