import type { WorkerEvents } from 'graphile-worker'
import type { JobLock } from '../../sql/workerPools.ts'

/** The jobs that a Graphile Worker pool has in memory: fetched and waiting for a slot, or running. */
export type JobsInHand = {
  has(lock: JobLock): boolean
  /** The epoch in which the job was fetched (see registration.ts). */
  epochOf(lock: JobLock): number | undefined
}

const keyOf = ({ id, attempts }: JobLock) => `${id}:${attempts}`

/** Follows a pool's events. A job leaves the hand when its task has ended and the statement for its row is under way. */
export function followJobs(events: WorkerEvents, epoch: () => number): JobsInHand {
  const epochs = new Map<string, number>()
  const waiting = new Set<string>()
  events.on('localQueue:getJobs:complete', ({ jobs }) => {
    for (const job of jobs) {
      epochs.set(keyOf(job), epoch())
      waiting.add(keyOf(job))
    }
  })
  events.on('job:start', ({ job }) => {
    waiting.delete(keyOf(job))
  })
  events.on('job:complete', ({ job }) => {
    epochs.delete(keyOf(job))
  })
  // In these modes the local queue has given back the jobs that no slot had taken.
  events.on('localQueue:setMode', ({ newMode }) => {
    if (newMode !== 'TTL_EXPIRED' && newMode !== 'RELEASED') return
    for (const key of waiting) epochs.delete(key)
    waiting.clear()
  })
  return {
    has: (lock) => epochs.has(keyOf(lock)),
    epochOf: (lock) => epochs.get(keyOf(lock)),
  }
}
