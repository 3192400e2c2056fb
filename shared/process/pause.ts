/**
 * Describes a sleep of one part of the process that another part can end early. Only one sleep of a pause runs at a
 * time.
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
