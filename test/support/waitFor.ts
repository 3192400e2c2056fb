const POLL_MS = 10

/** Waits until `probe` answers something other than undefined, null or false, and returns it. */
export async function waitFor<Result>(
  wanted: string,
  probe: () => Promise<Result> | Result,
  timeoutMs = 60_000,
): Promise<NonNullable<Exclude<Result, false>>> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const result = await probe()
    if (result !== undefined && result !== null && result !== false) {
      return result as NonNullable<Exclude<Result, false>>
    }
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for: ${wanted}`)
    await Bun.sleep(POLL_MS)
  }
}
