import { expect, test } from 'bun:test'
import { Registry } from 'prom-client'
import { addJob } from '../../../sql/queue/jobs.ts'
import { createJobMetrics } from '../../../workers/queue/jobMetrics.ts'
import { startPool } from '../../../workers/queue/pool.ts'
import { createTestDatabase } from '../../support/database/database.ts'
import { silentLog } from '../../support/logs.ts'
import { waitFor } from '../../support/waitFor.ts'

test('the metrics of jobs count the jobs that fail apart from the jobs that succeed', async () => {
  await using database = await createTestDatabase()
  const registry = new Registry()
  const pool = await startPool(
    {
      name: 'inbound',
      databaseUrl: database.url,
      concurrency: 2,
      pollIntervalMs: 100,
      metrics: createJobMetrics(registry),
      tasks: () => ({
        async verify_domain({ domain }) {
          if (domain === 'broken.example') throw new Error('broken')
        },
      }),
    },
    silentLog,
  )
  try {
    for (const domain of ['a.example', 'b.example', 'broken.example']) {
      await addJob(database.pool, { task: 'verify_domain', payload: { domain }, key: domain })
    }
    const ended = async () => {
      const { values } = (await registry.getSingleMetric('purser_jobs_ended_total')!.get())!
      return Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]))
    }
    await waitFor('three jobs to end', async () => {
      const { done = 0, failed = 0 } = await ended()
      return done + failed === 3
    })
    expect(await ended()).toEqual({ done: 2, failed: 1 })
  } finally {
    await pool.stop()
  }
})
