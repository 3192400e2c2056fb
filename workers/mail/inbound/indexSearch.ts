import { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'
import { type Built, buildSegments } from '../../../sql/mail/search/buildSegments.ts'
import { patiently } from '../../queue/patiently.ts'
import type { PoolContext, Task } from '../../queue/task.ts'

/**
 * Adds the words of a project's mail to the search index of the project, one step at a time. The projects run the steps
 * of their indexing one after another, beginning with the project that has caused the least load.
 */
export function createIndexSearch({ pool, log }: PoolContext): Task<'index_search'> {
  const turns = new CostTurns(new Costs(), 1)
  const inHand = new Set<string>()

  const step = (projectId: string): Promise<Built> =>
    turns.run([projectId], () => patiently(() => buildSegments(pool, projectId)))

  return async ({ projectId }) => {
    // A flood of mail queues many indexing jobs for one project. Only one of them needs to run at a time, so the others
    // end at once.
    if (inHand.has(projectId)) return
    inHand.add(projectId)
    try {
      for (;;) {
        const built = await step(projectId)
        if (built === null) return
        log.debug({ projectId, built }, 'search segments were built')
      }
    } finally {
      inHand.delete(projectId)
    }
  }
}
