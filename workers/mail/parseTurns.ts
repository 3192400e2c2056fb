import { FairTurns } from '../../shared/process/fairTurns.ts'

/** Mails in hand. More would not be stored sooner: they share one processor. */
const IN_HAND = 32
/** A mail that waits longer, for a name server or a child process, passes its turn on. */
const TURN_MAX_MS = 50
/** The event loop serves others after this time: the database waits for its next statement. */
const BUSY_MAX_MS = 2

/** Lets a few mails be read and authenticated at once. Inboxes take turns. */
export type ParseTurns = {
  /** Waits for a turn. @returns its end; calling it again does nothing. */
  enter(projectId: string): Promise<() => void>
}

export function createParseTurns(): ParseTurns {
  const turns = new FairTurns({ total: IN_HAND, perOwner: IN_HAND })
  return {
    async enter(projectId) {
      const end = await turns.enter(projectId)
      const timer = setTimeout(end, TURN_MAX_MS)
      return () => {
        clearTimeout(timer)
        end()
      }
    },
  }
}

/** Runs work one after the other. Work that runs at once would hold up the event loop for all of it. */
export function createSingleFile(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  let servedMs = performance.now()
  return (work) => {
    const run = async () => {
      if (performance.now() - servedMs > BUSY_MAX_MS) {
        await new Promise((resolve) => setImmediate(resolve))
        servedMs = performance.now()
      }
      return await work()
    }
    const result = last.then(run)
    last = result.catch(() => {})
    return result
  }
}
