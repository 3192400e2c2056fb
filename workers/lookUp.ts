import { Resolver } from 'node:dns/promises'
import type { Dns } from './dns.ts'

/** Asks the DNS as node:dns does: errors have a `code`, and a name without such a record is ENOTFOUND. */
export type LookUp = (name: string, type: string) => Promise<string[] | string[][] | object>

const TIMEOUT_MS = 2_000
const TRIES = 2

/**
 * @param dns answers for TXT, which Bun's resolver breaks at every 255 bytes: no DKIM key would be whole.
 * @param servers `address[:port]` each; the system's when there is none.
 */
export function createLookUp(dns: Pick<Dns, 'txt'>, servers: readonly string[]): LookUp {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)
  return async (name, type) => {
    if (type !== 'TXT') return resolver.resolve(name, type)
    const texts = await dns.txt(name)
    if (texts.length > 0) return texts.map((text) => [text])
    throw Object.assign(new Error(`no TXT record: ${name}`), { code: 'ENOTFOUND' })
  }
}
