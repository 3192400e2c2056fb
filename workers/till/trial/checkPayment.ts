import type { Address } from 'viem'
import { addJob } from '../../../sql/queue/jobs.ts'
import {
  type Check,
  findCheck,
  passCheck,
  refuseCheck,
} from '../../../sql/till/payments/paymentChecks.ts'
import { transferOf } from '../../../sql/till/payments/payments.ts'
import type { Task } from '../../queue/task.ts'
import { hasCode } from '../chain/chain.ts'
import { type ChainView, isKnown, type KnownChain, refreshHead } from '../chain/chainView.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { transferGas } from '../chain/transfer.ts'
import { confirmRefusal } from '../settle/verdict.ts'
import type { Till } from '../till.ts'
import { nextAccount, senderOf, suspensionOf, tryTransfers } from './trial.ts'

const RETRY_MS = 500

/**
 * Simulates a payment authorization before the service claims it (stores it as a payment). If the service stored the
 * payment before the simulation, a stranger with a random signature could occupy a nonce of somebody else’s wallet.
 */
export const createCheckPayment =
  ({ view }: Till): Task<'check_payment'> =>
  async ({ checkId }) => {
    const check = await findCheck(view.pool, checkId)
    if (check === null || check.state !== 'open') return
    try {
      if (!isKnown(view)) throw new RpcTrouble('the chain is not known yet')
      await judge(view, check)
    } catch (error) {
      if (!(error instanceof RpcTrouble)) throw error
      await retry(view, checkId)
    }
  }

async function judge(chain: KnownChain, check: Check): Promise<void> {
  const { claim, reasonWithoutCode } = check
  const isReady = reasonWithoutCode === null || (await hasCodeByNow(chain, claim.payer))
  if (!isReady && !isDeployable(chain, claim)) {
    return refuseCheck(chain.pool, check.id, reasonWithoutCode)
  }
  // A wallet contract that is already deployed needs no factory, even if the payment header names a factory.
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
 * Tells whether the wallet of a payer has contract code. If the wallet has no code at the newest block that this
 * process knows, asks the chain node for its newest block and reads the code again.
 */
async function hasCodeByNow(chain: KnownChain, payer: Address): Promise<boolean> {
  if (await hasCode(chain.rpc, payer, chain.head.number)) return true
  await refreshHead(chain)
  return hasCode(chain.rpc, payer, chain.head.number)
}

/** Tells whether the operator pays for wallet deployments by the factory contract of a payment. */
const isDeployable = (chain: KnownChain, { factory }: Check['claim']): boolean =>
  factory !== null && chain.factories.has(factory.toLowerCase())

async function retry(view: ChainView, checkId: string): Promise<void> {
  await addJob(view.pool, {
    task: 'check_payment',
    payload: { checkId },
    key: `check_payment:${checkId}`,
    runAt: new Date(Date.now() + RETRY_MS),
  })
}
