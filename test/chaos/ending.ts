const STEP_LIMIT_MS = 20_000

/** Holds the steps that stop the parts of the test environment, in reverse order of their start. */
export type Ending = {
  /** Adds a step that stops one started part of the test environment. */
  add(name: string, end: () => PromiseLike<void> | void): void
  /** Runs every step, even if an earlier step failed. @returns a line for each step that failed or took too long. */
  run(): Promise<string[]>
}

/** Returns an empty list of the steps that stop the test environment. */
export function newEnding(): Ending {
  const steps: { name: string; end: () => PromiseLike<void> | void }[] = []
  return {
    add: (name, end) => void steps.push({ name, end }),
    async run() {
      const troubles: string[] = []
      for (const { name, end } of steps.splice(0).toReversed()) {
        const trouble = await limited(end)
        if (trouble !== null) troubles.push(`end of ${name}: ${trouble}`)
      }
      return troubles
    },
  }
}

async function limited(end: () => PromiseLike<void> | void): Promise<string | null> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`not within ${STEP_LIMIT_MS} ms`), STEP_LIMIT_MS)
  })
  try {
    return await Promise.race([Promise.resolve(end()).then(() => null), late])
  } catch (error) {
    return (error as Error).message
  } finally {
    clearTimeout(timer)
  }
}
