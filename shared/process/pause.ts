/**
 * Lets one part of the process sleep until a time, or until another part of the process ends the sleep early. A pause
 * runs only one sleep at a time.
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
