import { listenError } from './listenError.ts'

/**
 * Calls `Bun.serve`. Bun's own error for an unusable address would not name the setting that must change.
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
