import type { WorkerEvents } from 'graphile-worker'
import { Counter, Histogram, type Registry } from 'prom-client'

const LATENESS_BUCKETS = [0.01, 0.05, 0.25, 1, 5, 15, 60, 300]
const DURATION_BUCKETS = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 30, 120]

/**
 * Measures the jobs of every worker pool that was passed to `follow`. Several worker pools of a process may share one
 * JobMetrics.
 */
export type JobMetrics = { follow(events: WorkerEvents): void }

/** Measures the jobs of a process. */
export function createJobMetrics(registry: Registry): JobMetrics {
  const registers = [registry]
  const ended = new Counter({
    name: 'purser_jobs_ended_total',
    help: 'Ended jobs by task and outcome',
    labelNames: ['task', 'outcome'],
    registers,
  })
  const lateness = new Histogram({
    name: 'purser_job_lateness_seconds',
    help: 'From the time at which a job was due to its start',
    labelNames: ['task'],
    buckets: LATENESS_BUCKETS,
    registers,
  })
  const durations = new Histogram({
    name: 'purser_job_duration_seconds',
    help: 'Duration of jobs',
    labelNames: ['task'],
    buckets: DURATION_BUCKETS,
    registers,
  })
  return {
    follow(events) {
      const startedMs = new Map<string, number>()
      events.on('job:start', ({ job }) => {
        startedMs.set(job.id, performance.now())
        lateness.observe(
          { task: job.task_identifier },
          Math.max(0, Date.now() - new Date(job.run_at).getTime()) / 1000,
        )
      })
      events.on('job:complete', ({ job, error }) => {
        const task = job.task_identifier
        const began = startedMs.get(job.id)
        startedMs.delete(job.id)
        if (began !== undefined) durations.observe({ task }, (performance.now() - began) / 1000)
        ended.inc({ task, outcome: error === undefined || error === null ? 'done' : 'failed' })
      })
    },
  }
}
