import type { WorkerEvents } from 'graphile-worker'

/**
 * The jobs that a Graphile Worker pool has in memory: fetched and waiting for a slot, or running
 * (docs/decisions/jobs-in-memory.md).
 */
export type JobsInHand = {
  has(jobId: string): boolean
  /** The epoch in which the job was fetched (see registration.ts). */
  epochOf(jobId: string): number | undefined
}

/** Follows a pool's events. A job leaves the hand when its task has ended and the statement for its row is under way. */
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
  // In these modes the local queue has returned the jobs that no slot had taken.
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
