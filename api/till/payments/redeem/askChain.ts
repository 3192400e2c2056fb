import { newCheckId } from '../../../../shared/ids.ts'
import type { AuthorizationVerdict } from '../../../../shared/till/authorization.ts'
import type { X402Reason } from '../../../../shared/till/x402.ts'
import { createCheck, findCheck, refuseCheck } from '../../../../sql/till/payments/paymentChecks.ts'
import type { NewClaim } from '../../../../sql/till/settle/claims.ts'
import type { Services } from '../../../http/services.ts'

/**
 * Asks a worker to simulate a payment authorization on the chain, without sending a transaction.
 * @param claims tells whether the worker stores the authorization as a payment if the chain accepts it in the
 * simulation.
 */
export async function askChain(
  services: Services,
  question: {
    claim: NewClaim
    verdict: Exclude<AuthorizationVerdict, { kind: 'invalid' }>
    claims: boolean
    deadlineMs: number
  },
): Promise<{ ok: true } | { ok: false; reason: X402Reason }> {
  const { claim, verdict, claims, deadlineMs } = question
  const id = newCheckId()
  const watch = services.waiters.watch(id)
  try {
    await createCheck(services.pool, {
      id,
      claim,
      claims,
      reasonWithoutCode: verdict.kind === 'contract' ? verdict.reasonWithoutCode : null,
    })
    let check = await findCheck(services.pool, id)
    while (check?.state === 'open' && (await watch.changed(deadlineMs))) {
      check = await findCheck(services.pool, id)
    }
    // When the wait for the chain ends without a result, the service tells the caller that the payment failed.
    // Therefore a later result of the chain must not turn the authorization into a payment. If the result has already
    // arrived, `refuseCheck` changes nothing.
    await refuseCheck(services.pool, id, 'unexpected_verify_error')
    check = await findCheck(services.pool, id)
    if (check?.state === 'passed') return { ok: true }
    return { ok: false, reason: check?.reason ?? 'unexpected_verify_error' }
  } finally {
    watch.close()
  }
}
