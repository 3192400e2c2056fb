import type { Task } from '../pool.ts'

/** Brings one claimed payment on its way, together with those whose jobs came at the same time. */
export const settlePayment: Task<'settle_payment'> = async ({ paymentId }, { till }) => {
  if (till === undefined) throw new Error('this pool has no till')
  await till.settle(paymentId)
}
