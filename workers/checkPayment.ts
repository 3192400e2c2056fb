import { addJob } from '../sql/jobs.ts'
import { type Check, findCheck, passCheck, refuseCheck } from '../sql/paymentChecks.ts'
import { hasCode, simulateNow } from './chain.ts'
import { type ChainView, isKnown, type KnownChain } from './chainView.ts'
import type { Task } from './pool.ts'
import { RpcTrouble } from './rpc.ts'
import { confirmRefusal } from './settler.ts'
import type { Transfer } from './transfer.ts'

const RETRY_MS = 500

/**
 * Judges an authorization by the chain alone, before anything is claimed: were it claimed first, a stranger could spend
 * a wallet's nonce with a signature made of noise.
 */
export const checkPayment: Task<'check_payment'> = async ({ checkId }, { till }) => {
  if (till === undefined) throw new Error('this pool has no till')
  const { view } = till
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
  const transfer = transferOf(check)
  const coded =
    check.reasonWithoutCode === null ||
    (await hasCode(chain.rpc, transfer.payer, chain.head.number))
  if (!coded) return refuseCheck(chain.pool, check.id, check.reasonWithoutCode!)
  const [result] = await simulateNow(chain.rpc, [transfer], chain.accounts[0]!.address)
  if (result?.outcome === 'passes') return passCheck(chain.pool, check)
  if (result?.outcome !== 'refused') throw new RpcTrouble(result?.detail ?? 'no answer')
  const { refusal } = result
  const borneOut = refusal.kind === 'expired' || (await confirmRefusal(chain, transfer, refusal))
  if (!borneOut) throw new RpcTrouble(refusal.detail)
  await refuseCheck(chain.pool, check.id, refusal.reason)
}

function transferOf({ claim }: Check): Transfer {
  return {
    asset: claim.asset,
    payer: claim.payer,
    recipient: claim.recipient,
    amountAtomic: BigInt(claim.amount_atomic),
    validAfter: BigInt(claim.valid_after),
    validBefore: BigInt(claim.valid_before),
    nonce: claim.authorization_nonce,
    signature: claim.signature,
  }
}

async function retry(view: ChainView, checkId: string): Promise<void> {
  await addJob(view.pool, {
    task: 'check_payment',
    payload: { checkId },
    key: `check_payment:${checkId}`,
    runAt: new Date(Date.now() + RETRY_MS),
  })
}
