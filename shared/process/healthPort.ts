/**
 * Serves a part's own health, so that probes need no program in its container:
 * 200 `{"status":"ok"}` under `/healthz` while `isUp` says so, else 503. An event loop that stands still answers nothing.
 *
 * @throws when the port is taken
 */
export function serveHealth(
  { host, port }: { host: string; port: number },
  isUp: () => boolean,
): { port: number } {
  const server = Bun.serve({
    hostname: host,
    port,
    routes: {
      '/healthz': () => {
        const up = isUp()
        return Response.json({ status: up ? 'ok' : 'not ready' }, { status: up ? 200 : 503 })
      },
    },
  })
  return { port: server.port! }
}
