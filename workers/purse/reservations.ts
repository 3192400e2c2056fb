import { type Batcher, createBatcher } from '../../shared/process/batcher.ts'
import type { Pool } from '../../sql/db.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import { type Reserved, reserve, type Wanted } from '../../sql/purse/purchases/reserve.ts'

/**
 * Limits how many payments one database transaction signs, because the transaction locks the purse (the wallet of a
 * project) for some 2 ms for each payment.
 */
const GROUP_MAX = 50

/**
 * Reserves and signs payments from a purse (the wallet of a project). Payments that wait for the lock of one purse are
 * signed together (docs/decisions/batching.md). Payments from different purses do not wait for each other.
 */
export function createReservations(pool: Pool, source: KeyringSource, dailyGas: number | null) {
  const purses = new Map<string, { batcher: Batcher<Wanted, Reserved>; waiting: number }>()
  const open = (projectId: string) => {
    const batcher = createBatcher<Wanted, Reserved>({
      run: async (wanted) => reserve(pool, await source(pool), { projectId, wanted, dailyGas }),
      batchMax: GROUP_MAX,
      parallel: 1,
    })
    const purse = { batcher, waiting: 0 }
    purses.set(projectId, purse)
    return purse
  }
  return async (projectId: string, wanted: Wanted): Promise<Reserved> => {
    const purse = purses.get(projectId) ?? open(projectId)
    purse.waiting++
    try {
      return await purse.batcher.submit(wanted)
    } finally {
      purse.waiting--
      if (purse.waiting === 0) purses.delete(projectId)
    }
  }
}
