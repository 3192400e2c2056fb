import { getServers } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { errorCode } from '../../shared/errorCode.ts'
import { queryTxt } from './queryTxt.ts'

/**
 * Describes DNS lookups for mail. Each DNS lookup returns an empty list both for a missing record and for a missing
 * name, because Bun's resolver does not distinguish these two cases. Each DNS lookup throws if the name server fails or
 * does not answer.
 */
export type Dns = {
  mx(name: string): Promise<{ priority: number; exchange: string }[]>
  /** Returns the IPv4 addresses first, because the mail reputation of a host more often belongs to its IPv4 address. */
  addresses(name: string): Promise<string[]>
  /** Returns each TXT record as one text, for which the strings of the TXT record are concatenated (RFC 7208 §3.3). */
  txt(name: string): Promise<string[]>
}

const TIMEOUT_MS = 5_000
const TRIES = 2

/** Tells whether an error of a DNS query means that the name has no such record. */
export const isNoRecord = (error: unknown): error is Error =>
  ['ENOTFOUND', 'ENODATA'].includes(errorCode(error))

/**
 * Creates DNS lookups at the resolvers of the operating system, or at `servers` (`address:port`). The DNS lookups for
 * mail ignore /etc/hosts.
 */
export function createDns(servers?: readonly string[]): Dns {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers !== undefined) resolver.setServers(servers)
  const orNone = async <Item>(asked: Promise<Item[]>): Promise<Item[]> => {
    try {
      return await asked
    } catch (error) {
      if (isNoRecord(error)) return []
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
      // Some name servers report a failure if a name has no DNS record of the requested type. Therefore the failure of
      // one of the two queries counts only if the other query found nothing.
      if (found.length === 0 && failed?.status === 'rejected') throw failed.reason
      return found
    },
    // The list of the operating system’s resolvers is read for each query, because the list can change while this
    // process runs.
    txt: (name) =>
      queryTxt(name, { servers: servers ?? getServers(), timeoutMs: TIMEOUT_MS, tries: TRIES }),
  }
}
