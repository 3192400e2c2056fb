import { createBuy } from '../purse/buy.ts'
import { createPayOut } from '../purse/payOut.ts'
import { PURSE_LIMITS } from '../queue/lanes.ts'
import { RUNNER_CONNECTIONS } from '../queue/runnerConnections.ts'
import type { OutboundHttp, Runner } from './runner.ts'

/** Runs the jobs that make purchases for agents. */
export const purseRunner = (
  options: OutboundHttp & { deniedPayees: ReadonlySet<string>; dailyGas: number | null },
): Runner<'purse'> => ({
  name: 'purse',
  tasks: (context) => ({
    buy: createBuy(context, options),
    pay_out: createPayOut(context, options),
  }),
  pollIntervalMs: 500,
  // The job of a purchase mostly waits for a seller that settles the payment on the chain. One project gets at most
  // a third of the slots.
  concurrency: 200,
  lanes: PURSE_LIMITS,
  connections: RUNNER_CONNECTIONS.purse,
})
