import type { Task } from '../../queue/task.ts'
import type { Till } from '../till.ts'

/** Settles one stored payment together with other payments that have a job at the same time. */
export const createSettlePayment =
  (till: Till): Task<'settle_payment'> =>
  ({ paymentId }) =>
    till.settle(paymentId)
