/** FIFO byte semaphore. */
export type ByteSemaphore = {
  /** Waits until `bytes` are free. A request larger than the capacity runs alone. @returns the release. */
  enter(bytes: number): Promise<() => void>
}

export function createByteSemaphore(capacity: number): ByteSemaphore {
  const waiting: { bytes: number; enter: () => void }[] = []
  let taken = 0
  const admit = () => {
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      if (taken > 0 && taken + next.bytes > capacity) return
      taken += next.bytes
      waiting.shift()
      next.enter()
    }
  }
  return {
    async enter(bytes) {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push({ bytes, enter: resolve })
      admit()
      await promise
      let isIn = true
      return () => {
        if (!isIn) return
        isIn = false
        taken -= bytes
        admit()
      }
    },
  }
}
