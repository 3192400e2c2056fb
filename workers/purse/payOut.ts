import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import { payOut } from '../../sql/purse/payout.ts'
import { patiently } from '../queue/patiently.ts'
import type { PoolContext, Task } from '../queue/task.ts'

/**
 * Requests the due automatic payouts of purses (wallets of projects). A gas wallet sends the transactions of the
 * payouts.
 */
export const createPayOut =
  (
    { pool }: PoolContext,
    {
      keyring,
      deniedPayees,
      dailyGas,
    }: { keyring: KeyringSource; deniedPayees: ReadonlySet<string>; dailyGas: number | null },
  ): Task<'pay_out'> =>
  ({ projectId }) =>
    patiently(async () => payOut(pool, await keyring(pool), { projectId, deniedPayees, dailyGas }))
