/**
 * Sets the number of milliseconds for which work may run without a pause. In the pause, the process does other work.
 */
const SLICE_MS = 2

/**
 * Divides long work into short time slices. At the end of a time slice, the long work pauses until the process has done
 * its other waiting work.
 */
export function createSlices(): () => Promise<void> {
  let startMs = performance.now()
  return async () => {
    if (performance.now() - startMs < SLICE_MS) return
    await new Promise((resolve) => setImmediate(resolve))
    startMs = performance.now()
  }
}
