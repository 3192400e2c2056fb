import { listenError } from './listenError.ts'

/**
 * Starts an HTTP server with `Bun.serve`. If the server cannot listen on the address, the error names the setting that
 * the operator must change.
 * @throws {ConfigError} if the process cannot listen on the address.
 */
export function serve(
  options: Parameters<typeof Bun.serve>[0] & { port: number; hostname: string },
  portVariable: string,
) {
  try {
    return Bun.serve(options)
  } catch (error) {
    const { port, hostname: host } = options
    throw listenError(error, { portVariable, port, hostVariable: 'HOST', host })
  }
}
