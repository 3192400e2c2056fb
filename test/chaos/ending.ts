const STEP_LIMIT_MS = 20_000

/** Holds the steps that end the parts of a setting, in reverse order. */
export type Ending = {
  /** Adds a step, which ends one started part of the setting. */
  add(name: string, end: () => PromiseLike<void> | void): void
  /** Runs every step, even after a failed step. @returns a line for each step that failed or took too long. */
  run(): Promise<string[]>
}

/** Makes an empty list of the steps that end a chaos run. */
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
