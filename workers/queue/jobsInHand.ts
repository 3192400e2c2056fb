import type { WorkerEvents } from 'graphile-worker'

/**
 * Tells which jobs a Graphile Worker pool has in memory, either fetched and waiting for a slot, or running
 * (docs/decisions/jobs-in-memory.md).
 */
export type JobsInHand = {
  has(jobId: string): boolean
  /**
   * Returns the epoch under which a job was fetched. The epoch is the number of times that the pool has been registered
   * as alive (see registration.ts).
   */
  epochOf(jobId: string): number | undefined
}

/**
 * Follows the job events of a worker pool. A job counts as in memory until its task has ended and the SQL statement
 * that ends the job has begun.
 */
export function followJobs(events: WorkerEvents, epoch: () => number): JobsInHand {
  const epochs = new Map<string, number>()
  const waiting = new Set<string>()
  events.on('localQueue:getJobs:complete', ({ jobs }) => {
    for (const job of jobs) {
      epochs.set(job.id, epoch())
      waiting.add(job.id)
    }
  })
  events.on('job:start', ({ job }) => {
    waiting.delete(job.id)
  })
  events.on('job:complete', ({ job }) => {
    epochs.delete(job.id)
  })
  // In the modes TTL_EXPIRED and RELEASED, Graphile Worker's local queue has given back the jobs that were still
  // waiting for a slot. Therefore these jobs are no longer in memory.
  events.on('localQueue:setMode', ({ newMode }) => {
    if (newMode !== 'TTL_EXPIRED' && newMode !== 'RELEASED') return
    for (const id of waiting) epochs.delete(id)
    waiting.clear()
  })
  return {
    has: (jobId) => epochs.has(jobId),
    epochOf: (jobId) => epochs.get(jobId),
  }
}
