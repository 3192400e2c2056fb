import { listenError } from './listenError.ts'

/**
 * Calls `Bun.serve`. The error for an unusable address names the wrong variable.
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
