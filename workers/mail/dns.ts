import { getServers } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { queryTxt } from './queryTxt.ts'

/**
 * DNS lookups for mail. Each returns an empty list for a missing record or name: Bun's resolver does not tell them apart.
 * Each throws when the name server fails or is silent.
 */
export type Dns = {
  mx(name: string): Promise<{ priority: number; exchange: string }[]>
  /** IPv4 first: a host's reputation is more often that of its IPv4 address. */
  addresses(name: string): Promise<string[]>
  /** Each record as one text, its strings concatenated (RFC 7208 §3.3). */
  txt(name: string): Promise<string[]>
}

const TIMEOUT_MS = 5_000
const TRIES = 2

/** Lookups by the system's resolvers, or by `servers` (`address:port`). /etc/hosts is ignored. */
export function createDns(servers?: readonly string[]): Dns {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers !== undefined) resolver.setServers(servers)
  const orNone = async <Item>(asked: Promise<Item[]>): Promise<Item[]> => {
    try {
      return await asked
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : ''
      if (code === 'ENOTFOUND' || code === 'ENODATA') return []
      throw error
    }
  }
  return {
    mx: (name) => orNone(resolver.resolveMx(name)),
    async addresses(name) {
      const answers = await Promise.allSettled([
        orNone(resolver.resolve4(name)),
        orNone(resolver.resolve6(name)),
      ])
      const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
      const failed = answers.find(({ status }) => status === 'rejected')
      // Some servers fail for the record type that the name lacks.
      if (found.length === 0 && failed?.status === 'rejected') throw failed.reason
      return found
    },
    // Read for each query: the system's resolvers can change while we run.
    txt: (name) =>
      queryTxt(name, { servers: servers ?? getServers(), timeoutMs: TIMEOUT_MS, tries: TRIES }),
  }
}
