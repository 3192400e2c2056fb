import { getServers } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { queryTxt } from './queryTxt.ts'

/**
 * The names that mail needs. Each answers an empty list where a name has no such record, or is none, which Bun's resolver
 * does not tell apart; and throws where nobody can say: the server fails or is silent.
 */
export type Dns = {
  mx(name: string): Promise<{ priority: number; exchange: string }[]>
  /** IPv4 first: of two addresses of one host its own is more often the one whose reputation it keeps. */
  addresses(name: string): Promise<string[]>
  /** Each record as one text, its strings put together (RFC 7208 §3.3). */
  txt(name: string): Promise<string[]>
}

const TIMEOUT_MS = 5_000
const TRIES = 2

/** The names of the system's resolvers, or of those given (`address:port`). Names of /etc/hosts count for nothing. */
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
      // Some servers fail at the kind that they have none of.
      if (found.length === 0 && failed?.status === 'rejected') throw failed.reason
      return found
    },
    // Asked anew each time: the system's resolvers can change while we run.
    txt: (name) =>
      queryTxt(name, { servers: servers ?? getServers(), timeoutMs: TIMEOUT_MS, tries: TRIES }),
  }
}
