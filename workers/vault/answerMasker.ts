import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { CpuBudget } from '../../shared/fair/cpuBudget.ts'
import { FairTurns } from '../../shared/fair/fairTurns.ts'
import type { UseAnswer } from '../../shared/vault/useAnswer.ts'
import { ChildError, type ChildLimits, createChildren } from '../process/child.ts'
import { type ReceivedAnswer, withoutContent } from './maskedAnswer.ts'

/** An honest megabyte takes a second; seven long secrets with one prefix took 30 s when the cost was text times needle. */
const LIMITS: ChildLimits = { timeMaxMs: 10_000, memoryMaxBytes: 1024 * 1024 * 1024 }
/** Processor time of one project: a burst, and what it gets back in each second. */
const BUDGET = { burstMs: 20_000, perSecondMs: 250 }

/** Masks answers, each in a child process with limits of time and memory. */
export type AnswerMasker = {
  /** Milliseconds until the project has processor time for another answer; 0: it has. */
  delayMs(projectId: string): number
  /** The answer for the caller; without its content if masking passes a limit. */
  mask(answer: ReceivedAnswer, secrets: readonly string[], projectId: string): Promise<UseAnswer>
}

export function createAnswerMasker(limits = LIMITS, budgetLimits = BUDGET): AnswerMasker {
  // One processor stays free for all other work.
  const total = Math.max(1, availableParallelism() - 1)
  const turns = new FairTurns({ total, perSharer: 1 })
  const budget = new CpuBudget(budgetLimits)
  const children = createChildren<
    { answer: ReceivedAnswer; secrets: readonly string[] },
    UseAnswer
  >({ file: join(import.meta.dir, 'maskerMain.ts'), name: 'the masker', limits })
  return {
    delayMs: (projectId) => budget.delayMs(projectId),
    async mask(answer, secrets, projectId) {
      const leave = await turns.enter(projectId)
      try {
        const { result, cpuMs } = await children.run({ answer, secrets })
        budget.charge(projectId, cpuMs)
        return result
      } catch (error) {
        // The text of the error may hold a part of the answer: nobody gets it.
        if (!(error instanceof ChildError)) throw error
        budget.charge(projectId, error.cpuMs)
        return withoutContent(answer.status, 'too-slow')
      } finally {
        leave()
      }
    },
  }
}
