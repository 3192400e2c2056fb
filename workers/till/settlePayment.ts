import type { Task } from '../queue/task.ts'
import type { Till } from './till.ts'

/** Brings one claimed payment on its way, together with those whose jobs came at the same time. */
export const createSettlePayment =
  (till: Till): Task<'settle_payment'> =>
  ({ paymentId }) =>
    till.settle(paymentId)
