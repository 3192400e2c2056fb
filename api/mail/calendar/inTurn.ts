const lastOf = new Map<string, Promise<void>>()

/** Runs calls with the same key one after the other. Calls with different keys do not wait for each other. */
export async function inTurn<Result>(key: string, call: () => Promise<Result>): Promise<Result> {
  const own = (lastOf.get(key) ?? Promise.resolve()).then(call)
  const end = own.then(
    () => {},
    () => {},
  )
  lastOf.set(key, end)
  try {
    return await own
  } finally {
    if (lastOf.get(key) === end) lastOf.delete(key)
  }
}
