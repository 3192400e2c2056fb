import type { RunnerName } from '../../shared/tasks.ts'

/** Sets the number of database connections for the jobs of each runner. A worker process opens about ten more. */
export const RUNNER_CONNECTIONS: Readonly<Record<RunnerName, number>> = {
  inbound: 12,
  outbound: 12,
  webhooks: 12,
  vault: 6,
  purse: 12,
  payments: 36,
}
