import type { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'

/**
 * Sets the maximum size in bytes of a light mail. A light mail is read from the database together with the other mails
 * of its batch, and is parsed in this process within 15 ms.
 */
export const LIGHT_BYTES = 16 * 1024

/**
 * Limits how many light mails are in progress at once. A higher limit would not store light mails sooner, because all
 * light mails share one processor.
 */
const LIGHT_IN_HAND = 32
/**
 * Limits how many heavy mails are in progress at once. Heavy mails wait for the child processes that parse them, and do
 * not delay light mails.
 */
const HEAVY_IN_HAND = 8
/**
 * Limits the milliseconds for which a mail may occupy its place in the parser while the mail waits for a name server.
 * After this time, another mail gets the place.
 */
const TURN_MAX_MS = 50
/**
 * Sets the milliseconds of parsing after which the process handles other events, because the database waits for the
 * next SQL statement.
 */
const BUSY_MAX_MS = 2

/**
 * Describes the permission for one mail to be parsed. The caller calls `parsed` as soon as the mail waits only for name
 * servers. The caller calls `end` when the mail is finished.
 */
export type ParseTurn = { parsed: () => void; end: () => void }

/**
 * Limits how many mails are read, parsed and authenticated at once. The mails of inboxes and networks that have
 * recently caused the least load are processed first.
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
 * Runs one function at a time, in the order of cost: the function for the inbox or network that has caused the least
 * load runs first. If several functions ran at once, each function would wait for the event loop.
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
