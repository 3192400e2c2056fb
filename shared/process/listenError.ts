import { ConfigError } from '../config/config.ts'
import { errorCode } from '../errorCode.ts'

/**
 * Describes the address on which a process listens, with the names of the settings for the port and the host: `{
 * portVariable: 'PORT', port: 3000, … }`.
 */
export type ListenAddress = {
  portVariable: string
  port: number
  hostVariable: string
  host: string
}

/**
 * Turns the error of a failed listen call into an error for the operator. @returns a ConfigError if the process cannot
 * listen on the configured address. The function returns any other error unchanged.
 */
export function listenError(error: unknown, address: ListenAddress): unknown {
  const { portVariable, port, hostVariable, host } = address
  switch (errorCode(error)) {
    case 'EADDRINUSE':
      return new ConfigError(
        `${portVariable}: port ${port} of ${host} is taken by another program; stop it, or name another port`,
      )
    case 'EACCES':
      return new ConfigError(
        `${portVariable}: port ${port} is not allowed for this user; name one above 1023, or grant the right to bind it`,
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new ConfigError(
        `${hostVariable}: ${host} is no address of this machine; name one that is, or 0.0.0.0 for all`,
      )
    default:
      return error
  }
}
