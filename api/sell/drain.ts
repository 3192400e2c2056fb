import type { Server } from 'bun'

const POLL_MS = 20

/**
 * Ends the process after SIGTERM or SIGINT. The process first sends the responses to all accepted requests, because
 * their buyers may have paid. A second signal ends the process at once.
 * @param limitMs limits the milliseconds until the process ends. After this time, the process breaks open connections.
 */
export function drainOnSignal(
  server: Server<undefined>,
  limitMs: number,
  log: (line: string) => void,
): void {
  let isStopping = false
  const stop = async () => {
    if (isStopping) process.exit(1)
    isStopping = true
    const deadlineMs = performance.now() + limitMs
    void server.stop()
    while (server.pendingRequests > 0 && performance.now() < deadlineMs) await Bun.sleep(POLL_MS)
    const cut = server.pendingRequests
    if (cut > 0) log(`${cut} requests were cut off after ${limitMs / 1_000} s`)
    await server.stop(true)
    process.exit(cut > 0 ? 1 : 0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop())
}
