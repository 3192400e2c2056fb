import { createExamineChain, type ExamineOptions } from '../operations/doctor/examine.ts'
import { CHECK_LIMITS } from '../queue/lanes.ts'
import { RUNNER_CONNECTIONS } from '../queue/runnerConnections.ts'
import { createSettlePayment } from '../till/settle/settlePayment.ts'
import type { Till } from '../till/till.ts'
import { createCheckPayment } from '../till/trial/checkPayment.ts'
import type { Runner } from './runner.ts'

/** Runs the jobs that check and settle payments, and examine the chain for the doctor (the self-check). */
export const paymentsRunner = (till: Till, options: ExamineOptions): Runner<'payments'> => ({
  name: 'payments',
  tasks: (context) => ({
    settle_payment: createSettlePayment(till),
    check_payment: createCheckPayment(context, till),
    examine_chain: createExamineChain(context, options),
  }),
  pollIntervalMs: 200,
  // If the jobs of several payments run at the same time, their payments are simulated, signed and sent together. The
  // jobs of payments share the chain connections of the till (the payment part of the service).
  concurrency: 32,
  // Only the checks of payments use lanes (queues for one project each). A settlement never waits for a lane.
  lanes: CHECK_LIMITS,
  connections: RUNNER_CONNECTIONS.payments,
})
