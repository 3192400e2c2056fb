/** What is shared by those who enter one after the other, in the order in which they came. */
export type Room = {
  /** Waits until there is room for so much; more than there ever is enters alone. */
  enter(size: number): Promise<() => void>
}

export function createRoom(capacity: number): Room {
  const waiting: { size: number; enter: () => void }[] = []
  let taken = 0
  const admit = () => {
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      if (taken > 0 && taken + next.size > capacity) return
      taken += next.size
      waiting.shift()
      next.enter()
    }
  }
  return {
    async enter(size) {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push({ size, enter: resolve })
      admit()
      await promise
      let isIn = true
      return () => {
        if (!isIn) return
        isIn = false
        taken -= size
        admit()
      }
    },
  }
}
