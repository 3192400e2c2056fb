import { serve } from './serve.ts'

/**
 * Serves the health of one process over HTTP, so that probes need no program in the container. The path `/healthz`
 * returns 200 `{"status":"ok"}` while `isUp` returns true, and 503 otherwise. If the event loop hangs, a probe gets no
 * response.
 *
 * @throws {ConfigError} if the process cannot listen on the port.
 */
export function serveHealth(
  { host, port }: { host: string; port: number },
  isUp: () => boolean,
): { port: number } {
  const server = serve(
    {
      hostname: host,
      port,
      routes: {
        '/healthz': () => {
          const up = isUp()
          return Response.json({ status: up ? 'ok' : 'not ready' }, { status: up ? 200 : 503 })
        },
      },
    },
    'HEALTH_PORT',
  )
  return { port: server.port! }
}
