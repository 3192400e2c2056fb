/** Tests which outcomes of jobs wait for the database, and for how long. */
import { expect, test } from 'bun:test'
import { createHeldOutcomes } from '../../../workers/queue/heldOutcomes.ts'
import { silentLog } from '../../support/logs.ts'

/** Makes the error of a connection that PostgreSQL refuses. */
const away = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

test('after a database outage, the outcome of a job is recorded as soon as the database is back', async () => {
  let tries = 0
  const outcomes = createHeldOutcomes(silentLog)
  const recorded = outcomes.record(async () => {
    if (++tries < 3) throw away()
    return 'done'
  })
  await outcomes.settle(10_000)
  expect([await recorded, tries]).toEqual(['done', 3])
})

test('if the database refuses the outcome of a job, recording it is not tried again', async () => {
  let tries = 0
  const recorded = createHeldOutcomes(silentLog).record(async () => {
    tries++
    throw new Error('a bug')
  })
  expect([await recorded.catch(({ message }) => message), tries]).toEqual(['a bug', 1])
})

test('a worker pool that stops discards the outcomes of jobs that it cannot record in time', async () => {
  const outcomes = createHeldOutcomes(silentLog)
  const record = () =>
    outcomes.record(() => Promise.reject(away())).catch(({ message }: Error) => message)
  const recorded = record()
  await outcomes.settle(0)
  expect([await recorded, await record()]).toEqual(['connect ECONNREFUSED', 'connect ECONNREFUSED'])
})
