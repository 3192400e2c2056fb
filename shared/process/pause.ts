/**
 * Lets one part of the process sleep until a given time. Another part of the process can end the sleep early. A pause
 * allows only one sleep at a time.
 */
export type Pause = {
  sleep(ms: number): Promise<void>
  /** Ends the running sleep early. If no sleep is running, the call has no effect. */
  wake(): void
}

export function createPause(): Pause {
  let end = () => {}
  return {
    sleep: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, ms)
        end = () => {
          clearTimeout(timer)
          resolve()
        }
      }),
    wake: () => end(),
  }
}

/**
 * Runs work at once, and then again at intervals. The function skips a run while the previous run still takes place.
 * Otherwise runs would accumulate while the database does not respond, and a stop of the process would wait for all of
 * them.
 * @param work is a function whose promise never rejects.
 * @returns the first run, and a function that stops the repetition and waits for the present run.
 */
export function repeat(
  work: () => Promise<void>,
  everyMs: number,
): { first: Promise<void>; stop(): Promise<void> } {
  let isRunning = false
  const run = async () => {
    isRunning = true
    await work()
    isRunning = false
  }
  const first = run()
  let current = first
  const timer = setInterval(() => {
    if (!isRunning) current = run()
  }, everyMs)
  return {
    first,
    async stop() {
      clearInterval(timer)
      await current
    },
  }
}
