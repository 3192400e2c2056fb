import type { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'

/** Limits the bytes of a light mail. A light mail is read with its batch and parsed in this process, within 15 ms. */
export const LIGHT_BYTES = 16 * 1024

/**
 * Limits the light mails that are in progress at once. A higher limit would not store them sooner, because they share
 * one processor.
 */
const LIGHT_IN_HAND = 32
/**
 * Limits the heavy mails in process at once. Heavy mails wait for the child processes, and do not delay light mails.
 */
const HEAVY_IN_HAND = 8
/**
 * Is the time in milliseconds for which a mail keeps its turn while it waits for a name server. Then another mail gets
 * the turn.
 */
const TURN_MAX_MS = 50
/**
 * After this many milliseconds of parsing the event loop runs other work, because the database waits for its next
 * statement.
 */
const BUSY_MAX_MS = 2

/**
 * Describes the turn of one mail in the parser. The caller calls `parsed` as soon as the mail waits only for name
 * servers, and `end` when the mail is done.
 */
export type ParseTurn = { parsed: () => void; end: () => void }

/**
 * Limits the mails that are read, parsed and authenticated at once. The mails of inboxes and networks that have caused
 * the least load go first.
 */
export type ParseTurns = {
  enter(sharers: readonly string[], size: number): Promise<ParseTurn>
}

export function createParseTurns(costs: Costs): ParseTurns {
  const light = new CostTurns(costs, LIGHT_IN_HAND)
  const heavy = new CostTurns(costs, HEAVY_IN_HAND)
  return {
    async enter(sharers, size) {
      const end = await (size <= LIGHT_BYTES ? light : heavy).enter(sharers)
      let timer: ReturnType<typeof setTimeout> | undefined
      return {
        parsed: () => {
          timer ??= setTimeout(end, TURN_MAX_MS)
        },
        end: () => {
          clearTimeout(timer)
          end()
        },
      }
    },
  }
}

/**
 * Runs one piece of work at a time, in the order of the load that its inbox or network has caused. If several pieces
 * ran at once, each would wait for the event loop.
 */
export function createSingleFile(
  costs: Costs,
): <Result>(sharers: readonly string[], work: () => Promise<Result>) => Promise<Result> {
  const turns = new CostTurns(costs, 1)
  let servedMs = performance.now()
  return (sharers, work) =>
    turns.run(sharers, async () => {
      if (performance.now() - servedMs > BUSY_MAX_MS) {
        await new Promise((resolve) => setImmediate(resolve))
        servedMs = performance.now()
      }
      return await work()
    })
}
