import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { CpuBudget } from '../../shared/fair/cpuBudget.ts'
import { FairTurns } from '../../shared/fair/fairTurns.ts'
import type { UseAnswer } from '../../shared/vault/useAnswer.ts'
import { ChildError, type ChildLimits, createChildren } from '../process/child.ts'
import { type ReceivedAnswer, withoutContent } from './maskedAnswer.ts'

/**
 * Limits the time and memory for masking the secrets in one response. Masking an honest response of one megabyte takes
 * a second. The time limit protects against a hostile response. Such a response once took 30 s, when the cost was the
 * text length times the secret length. The memory limit is above the 345 MB of the costliest of twelve kinds of
 * responses of one megabyte.
 */
const LIMITS: ChildLimits = { timeMaxMs: 10_000, memoryMaxBytes: 640 * 1024 * 1024 }
/**
 * Limits how many responses the process masks at once. The memory of a container of the vault pool is enough for two
 * masking processes and the worker itself, also on a machine with many processors.
 */
const AT_ONCE_MAX = 2
/**
 * Limits how much processor time the service uses for masking the responses of one project. A project may use `burstMs`
 * of processor time at once, and then gets `perSecondMs` back in each second.
 */
const BUDGET = { burstMs: 20_000, perSecondMs: 250 }

/**
 * Holds the pauses before each attempt to mask a response, in milliseconds. The service has the response only once,
 * because it never repeats a request with a secret. If the operating system kills a masking process, another process
 * masks the response.
 */
const PAUSES_MS = [0, 500, 3_000]

/** Masks secrets in HTTP responses. Each HTTP response is masked in a child process with limits on time and memory. */
export type AnswerMasker = {
  /**
   * Returns how many milliseconds remain until the project may mask another response. The number 0 means that it may
   * mask one now.
   */
  delayMs(projectId: string): number
  /**
   * Returns the masked response for the caller. If masking exceeds its limit of time or memory, or if each masking
   * process dies, the caller gets a response without content.
   */
  mask(answer: ReceivedAnswer, secrets: readonly string[], projectId: string): Promise<UseAnswer>
}

export function createAnswerMasker(limits = LIMITS, budgetLimits = BUDGET): AnswerMasker {
  // One processor of the machine stays unused, so that other processes can run.
  const total = Math.min(AT_ONCE_MAX, Math.max(1, availableParallelism() - 1))
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
        for (const pauseMs of PAUSES_MS) {
          await Bun.sleep(pauseMs)
          try {
            const { result, cpuMs } = await children.run({ answer, secrets })
            budget.charge(projectId, cpuMs)
            return result
          } catch (error) {
            // The error message of the masking may contain a part of the response, so the service shows this error
            // message to nobody.
            if (!(error instanceof ChildError)) throw error
            budget.charge(projectId, error.cpuMs)
            if (!error.isAccident) return withoutContent(answer.status, 'too-slow')
            if (budget.delayMs(projectId) > 0) break
          }
        }
        return withoutContent(answer.status, 'masking-failed')
      } finally {
        leave()
      }
    },
  }
}
