import { randomUUID } from 'node:crypto'
import { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'
import type { Instance } from '../../../shared/mail/calendar/instances.ts'
import {
  type DueExpansion,
  INSTANCES_MAX,
  isGivenUp,
  nextExpansionAt,
  postponeExpansion,
  queueExpansion,
  returnExpansionTry,
  storeInstances,
  takeExpansion,
} from '../../../sql/mail/calendar/instances.ts'
import { ChildError } from '../../process/child.ts'
import { patiently } from '../../queue/patiently.ts'
import type { PoolContext, Task } from '../../queue/task.ts'
import { createCalendarChildren } from './calendarChildren.ts'

/**
 * Computes the instances of a project's recurring events. Each run of the task computes the instances of one recurring
 * event, in a child process that can be killed.
 */
export function createExpandEvents({ pool, log }: PoolContext): Task<'expand_events'> {
  const turns = new CostTurns(new Costs(), 1)
  const children = createCalendarChildren()

  /** Returns the instances of a calendar event. Returns `null` if several runs have failed to compute them. */
  const instancesOf = async (due: DueExpansion, claim: string): Promise<Instance[] | null> => {
    const { row, source, fromMs, nowMs, untilMs } = due
    if (isGivenUp(due)) return null
    try {
      const window = { fromMs, nowMs, untilMs, max: INSTANCES_MAX }
      const { result } = await children.run({ source, window })
      return 'instances' in result ? result.instances : []
    } catch (error) {
      if (!(error instanceof ChildError)) throw error
      if (error.isUnstarted) await patiently(() => returnExpansionTry(pool, row, claim))
      if (error.isAccident) throw error
      log.info({ eventRow: row, reason: error.message }, 'event not expanded')
      return []
    }
  }

  return async ({ projectId }) => {
    await turns.run([projectId], async () => {
      const claim = randomUUID()
      const due = await patiently(() => takeExpansion(pool, projectId, claim))
      if (due === null) {
        const next = await nextExpansionAt(pool, projectId)
        if (next !== null) await queueExpansion(pool, projectId, next)
        return
      }
      const instances = await instancesOf(due, claim)
      await patiently(() =>
        instances === null ? postponeExpansion(pool, due) : storeInstances(pool, due, instances),
      )
      await queueExpansion(pool, projectId)
    })
  }
}
