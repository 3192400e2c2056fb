import { OutOfBoundsError } from '../../shared/vault/bounds/bounds.ts'
import { CredentialInputError } from '../../shared/vault/credential.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import {
  checkUseRequest,
  type FilledRequest,
  fillRequest,
  type UseRequest,
} from '../../shared/vault/useRequest.ts'
import { type Queryable, transaction } from '../../sql/db.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import { addJob } from '../../sql/queue/jobs.ts'
import { readForUse } from '../../sql/vault/credentialReads.ts'
import { type DueUse, endUse, findDueUse, startUse, type UseEnd } from '../../sql/vault/uses.ts'
import type { OutboundPolicy } from '../http/guardedRequest.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import { createAnswerMasker } from './answerMasker.ts'
import { sendFilled } from './sendFilled.ts'

type Options = { keyring: KeyringSource; policy: OutboundPolicy & { ca?: string } }

/**
 * Sends one request that contains a secret, at most once. The job marks the request as `sending` before it sends the
 * request. If a job finds this mark, an earlier run of the job was interrupted, and nobody knows whether the server has
 * acted on the request. The request then ends with the state `unknown`.
 */
export const createUseSecret = (
  { pool, lanes, outcomes }: PoolContext,
  { keyring: source, policy }: Options,
  masker = createAnswerMasker(),
): Task<'use_secret'> => {
  const finish = async (id: string, end: UseEnd) => {
    await outcomes.record(async () => endUse(pool, { id, keyring: await source(pool), end }))
  }
  return async ({ useId }) => {
    const due = await findDueUse(pool, useId)
    if (due === null) return
    if (due.state === 'sending') return finish(useId, CUT_OFF)
    if (due.state !== 'queued') return
    if (due.expired) return finish(useId, failed('it waited too long for a worker'))
    const delayMs = masker.delayMs(due.projectId)
    if (delayMs > 0) return comeBack(useId, delayMs)
    const turn = await lanes.enter(`use:${due.projectId}`, due.projectId)
    if (!turn.granted) return comeBack(useId, turn.returnInMs)
    try {
      const filled = await start(useId, due)
      if (filled !== null) await finish(useId, await send(filled, due))
    } finally {
      turn.leave()
    }
  }

  function comeBack(useId: string, inMs: number): Promise<void> {
    const key = `use_secret:${useId}`
    return addJob(pool, { task: 'use_secret', payload: { useId }, key, inMs })
  }

  /**
   * Marks the request as `sending`, and returns it with the secret filled in. If an error prevents this, nothing is sent,
   * so the mark is rolled back and a later run of the job sends the request.
   */
  async function start(useId: string, due: DueUse): Promise<FilledRequest | string | null> {
    const keyring = await source(pool)
    return transaction(pool, async (db) => {
      const request = await startUse(db, useId, keyring)
      return request === null ? null : fill(db, request, { ...due, keyring })
    })
  }

  async function send(filled: FilledRequest | string, due: DueUse): Promise<UseEnd> {
    if (typeof filled === 'string') return failed(filled)
    return sendFilled(policy, filled, (answer, secrets) =>
      masker.mask(answer, secrets, due.projectId),
    )
  }

  /**
   * Returns the HTTP request with the secret filled in, or the reason why the request must not be sent. The request is
   * checked again, because the credential may have changed since the service accepted the request.
   */
  async function fill(
    db: Queryable,
    request: UseRequest,
    due: DueUse & { keyring: Keyring },
  ): Promise<FilledRequest | string> {
    const credential = await readForUse(db, due)
    if (credential === null) return 'the credential is gone or has expired'
    try {
      checkUseRequest(request, { allowLoopback: policy.allowPrivate })
      return fillRequest(request, credential, Date.now())
    } catch (error) {
      if (error instanceof OutOfBoundsError) return `the credential ${error.message}`
      if (error instanceof CredentialInputError) return error.message
      throw error
    }
  }
}

const failed = (error: string): UseEnd => ({ state: 'failed', error })

const CUT_OFF: UseEnd = {
  state: 'unknown',
  error: 'the worker was cut off; the request was sent once or not at all',
}
