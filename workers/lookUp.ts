import { Resolver } from 'node:dns/promises'

/** Asks the DNS; throws errors with a `code` such as ENOTFOUND, as node:dns does. */
export type LookUp = (name: string, type: string) => Promise<string[] | string[][] | object>

const TIMEOUT_MS = 2_000
const TRIES = 2

/** @param servers `address[:port]` each; the system's when there is none. */
export function createLookUp(servers: readonly string[]): LookUp {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)
  return (name, type) => resolver.resolve(name, type)
}
