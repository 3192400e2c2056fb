/** Milliseconds of work at a stretch. */
const SLICE_MS = 2

/**
 * Cuts long work into slices: between two steps it waits until the process has done its other work, if a slice is over.
 */
export function createSlices(): () => Promise<void> {
  let startMs = performance.now()
  return async () => {
    if (performance.now() - startMs < SLICE_MS) return
    await new Promise((resolve) => setImmediate(resolve))
    startMs = performance.now()
  }
}
