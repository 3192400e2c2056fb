import { listenError } from './listenError.ts'

/**
 * `Bun.serve` whose errors name the variable that is wrong.
 * @throws {ConfigError} when the address cannot be listened on.
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
