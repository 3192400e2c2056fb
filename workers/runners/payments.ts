import { createExamineChain, type ExamineOptions } from '../operations/doctor/examine.ts'
import { RUNNER_CONNECTIONS } from '../queue/runnerConnections.ts'
import { createSettlePayment } from '../till/settle/settlePayment.ts'
import type { Till } from '../till/till.ts'
import { createCheckPayment } from '../till/trial/checkPayment.ts'
import type { Runner } from './runner.ts'

/** Checks and settles payments, and examines the chain for the doctor. */
export const paymentsRunner = (till: Till, options: ExamineOptions): Runner<'payments'> => ({
  name: 'payments',
  tasks: (context) => ({
    settle_payment: createSettlePayment(till),
    check_payment: createCheckPayment(till),
    examine_chain: createExamineChain(context, options),
  }),
  pollIntervalMs: 200,
  // Payments whose jobs run together are simulated, signed and sent together. The jobs share the connections of the
  // till.
  concurrency: 32,
  connections: RUNNER_CONNECTIONS.payments,
})
