import type { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'

/** The content of a mail up to this size is read with its batch and parsed in this process, within 15 ms. */
export const LIGHT_BYTES = 16 * 1024

/** Light mails in hand. More would not be stored sooner: they share one processor. */
const LIGHT_IN_HAND = 32
/** Heavier ones. They wait for the child processes, and hold up no light mail. */
const HEAVY_IN_HAND = 8
/** A mail that waits longer for a name server passes its turn on. */
const TURN_MAX_MS = 50
/** The event loop serves others after this time: the database waits for its next statement. */
const BUSY_MAX_MS = 2

/** A turn: `parsed` says that only the name servers keep it. */
export type ParseTurn = { parsed: () => void; end: () => void }

/** Lets a few mails be read, parsed and authenticated at once. Who has cost least goes first. */
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
 * Runs work one after the other, that of the lightest sharers first. Work that runs at once would hold up the event loop
 * for all of it.
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
