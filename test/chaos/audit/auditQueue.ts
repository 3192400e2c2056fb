import type { Evidence } from './evidence.ts'

/** Checks that after the chaos run no job is locked or left in the queue, and that no database row waits for work. */
export function auditQueue({ lockedJobs, jobs, openRows }: Evidence): string[] {
  return [
    ...lockedJobs.map((job) => `queue: ${job} is locked`),
    ...jobs.filter((job) => !lockedJobs.includes(job)).map((job) => `queue: ${job} is left`),
    ...openRows.map(({ row, hasJob }) =>
      hasJob ? `queue: ${row} is not done` : `queue: ${row} waits without a job`,
    ),
  ]
}
