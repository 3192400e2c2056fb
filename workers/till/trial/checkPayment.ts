import type { Address } from 'viem'
import { addJob } from '../../../sql/queue/jobs.ts'
import {
  type Check,
  findCheck,
  passCheck,
  refuseCheck,
} from '../../../sql/till/payments/paymentChecks.ts'
import { transferOf } from '../../../sql/till/payments/payments.ts'
import type { PoolContext, Task } from '../../queue/task.ts'
import { hasCode } from '../chain/chain.ts'
import { type ChainView, isKnown, type KnownChain, refreshHead } from '../chain/chainView.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { transferGas } from '../chain/transfer.ts'
import { confirmRefusal } from '../settle/verdict.ts'
import type { Till } from '../till.ts'
import { nextAccount, senderOf, suspensionOf, tryTransfers } from './trial.ts'

/**
 * Limits the pause in milliseconds between two runs of a payment check that the chain has not decided. The pause is
 * half the age of the check. It grows, because the simulations of a wallet can contradict each other for ever. With a
 * constant pause of half a second, 500 such checks would cause 1,000 runs a second. The pause depends on the age,
 * because a worker of an older release would throw on a count of runs in the payload.
 */
const PAUSE_MIN_MS = 500
const PAUSE_MAX_MS = 4_000
/**
 * Sets the age in milliseconds at which a payment check ends in any case. Normally, the API process that waits for the
 * payment check ends it after `SETTLEMENT_WAIT_MS`, which is at most two minutes. If this process has died, nobody else
 * ends the check.
 */
const AGE_MAX_MS = 120_000

/**
 * Simulates a payment authorization before the service stores it as a payment. Otherwise a stranger with a random
 * signature could occupy a nonce of somebody else’s wallet. Anyone can cause checks by sending payment headers.
 * Therefore the projects take turns with their checks.
 */
export const createCheckPayment =
  ({ lanes }: Pick<PoolContext, 'lanes'>, { view }: Till): Task<'check_payment'> =>
  async ({ checkId }) => {
    const check = await findCheck(view.pool, checkId)
    if (check === null || check.state !== 'open') return
    if (check.ageMs > AGE_MAX_MS) return refuseCheck(view.pool, checkId, 'unexpected_verify_error')
    const projectId = check.claim.project_id
    const turn = await lanes.enter(`check:${projectId}`, projectId)
    if (!turn.granted) return queueAgain(view, checkId, turn.returnInMs)
    try {
      if (!isKnown(view)) throw new RpcTrouble('the chain is not known yet')
      await judge(view, check)
    } catch (error) {
      if (!(error instanceof RpcTrouble)) throw error
      const inMs = Math.min(Math.max(check.ageMs / 2, PAUSE_MIN_MS), PAUSE_MAX_MS)
      await queueAgain(view, checkId, inMs)
    } finally {
      turn.leave()
    }
  }

async function judge(chain: KnownChain, check: Check): Promise<void> {
  const { claim, reasonWithoutCode } = check
  const isReady = reasonWithoutCode === null || (await hasCodeByNow(chain, claim.payer))
  if (!isReady && !isDeployable(chain, claim)) {
    return refuseCheck(chain.pool, check.id, reasonWithoutCode)
  }
  // A wallet contract that is already deployed needs no factory. Therefore the code drops the factory that the payment
  // header may name.
  const judged = isReady ? { ...claim, factory: null, factory_data: null } : claim
  const transfer = transferOf(judged)
  const suspension = await suspensionOf(chain, transfer)
  if (suspension !== null) return refuseCheck(chain.pool, check.id, suspension.reason)
  const sender = senderOf(chain, nextAccount(chain, transferGas(transfer)))
  const result = (await tryTransfers(chain, [transfer], sender))[0]?.outcome
  if (result?.kind === 'passes')
    return passCheck(chain.pool, { ...check, claim: judged }, chain.limits)
  if (result?.kind !== 'refused') throw new RpcTrouble(result?.detail ?? 'no answer')
  const { refusal } = result
  if (!(await confirmRefusal(chain, transfer, refusal))) throw new RpcTrouble(refusal.detail)
  await refuseCheck(chain.pool, check.id, refusal.reason)
}

/**
 * Tells whether the wallet of a payer has contract code. First reads the code at the newest block that this process
 * knows. If there is no code, reads it again at the newest block of the chain node.
 */
async function hasCodeByNow(chain: KnownChain, payer: Address): Promise<boolean> {
  if (await hasCode(chain.rpc, payer, chain.head.number)) return true
  await refreshHead(chain)
  return hasCode(chain.rpc, payer, chain.head.number)
}

/** Tells whether the operator pays for wallet deployments by the factory contract of a payment. */
const isDeployable = (chain: KnownChain, { factory }: Check['claim']): boolean =>
  factory !== null && chain.factories.has(factory.toLowerCase())

async function queueAgain(view: ChainView, checkId: string, inMs: number): Promise<void> {
  await addJob(view.pool, {
    task: 'check_payment',
    payload: { checkId },
    key: `check_payment:${checkId}`,
    inMs,
  })
}
