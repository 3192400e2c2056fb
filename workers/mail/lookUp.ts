import { Resolver } from 'node:dns/promises'
import { LRUCache } from 'lru-cache'
import { errorCode } from '../../shared/errorCode.ts'
import { type Dns, isNoRecord } from './dns.ts'

/**
 * Looks up DNS records. A failed DNS lookup throws an error of node:dns, and each error has a `code`. The `code` of the
 * error for a missing DNS record is ENOTFOUND or ENODATA.
 */
export type LookUp = (name: string, type: string) => Promise<string[] | string[][] | object>

const TIMEOUT_MS = 2_000
const TRIES = 2
/**
 * Sets how long the cache keeps a DNS record. This time is shorter than the lifetime (TTL) of most records, so that a
 * change of a DNS record takes effect soon. DNS resolvers cache a DNS record for a longer time.
 */
const KEPT_MS = 30_000
/**
 * Limits the bytes of cached DNS answers, because senders choose which names the service looks up and how large the
 * answers are.
 */
const KEPT_BYTES = 16 * 1024 * 1024

/**
 * If a name server does not answer, the service sends it no query for this many milliseconds, because each query would
 * delay a mail for seconds.
 */
const SILENT_MS = 60_000
const SILENT_NAMES_MAX = 10_000

type Answer = { records: Awaited<ReturnType<LookUp>> } | { none: Error }

/**
 * Caches the DNS lookups of mail authentication for half a minute, because all messages of one sender need the same
 * records.
 * @param dns answers TXT queries. Bun's resolver is not used for TXT, because it splits a TXT record at every 255
 * bytes, which breaks DKIM keys.
 * @param servers lists each name server in the form `address[:port]`. An empty list stands for the name servers of the
 * operating system.
 */
export function createLookUp(dns: Pick<Dns, 'txt'>, servers: readonly string[]): LookUp {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)
  const silent = new LRUCache<string, Error>({ ttl: SILENT_MS, max: SILENT_NAMES_MAX })
  const ask = async (name: string, type: string): Promise<Answer> => {
    try {
      if (type !== 'TXT') return { records: await resolver.resolve(name, type) }
      const texts = await dns.txt(name)
      if (texts.length > 0) return { records: texts.map((text) => [text]) }
      return { none: errorOf(`no TXT record: ${name}`, 'ENOTFOUND') }
    } catch (error) {
      if (isNoRecord(error)) return { none: error }
      if (isSilence(error)) silent.set(`${type} ${name.toLowerCase()}`, error)
      throw error
    }
  }
  const kept = new LRUCache<string, Answer, { name: string; type: string }>({
    ttl: KEPT_MS,
    maxSize: KEPT_BYTES,
    sizeCalculation: (answer, key) => key.length + JSON.stringify(answer).length,
    // If a DNS answer arrives after its entry was evicted from the cache, the waiting caller still gets the DNS answer.
    ignoreFetchAbort: true,
    fetchMethod: (_key, _stale, { context }) => ask(context.name, context.type),
  })
  return async (name, type) => {
    const key = `${type} ${name.toLowerCase()}`
    const failed = silent.get(key)
    if (failed !== undefined) throw failed
    const answer = await kept.forceFetch(key, { context: { name, type } })
    if ('none' in answer) throw answer.none
    return answer.records
  }
}

const errorOf = (message: string, code: string): Error =>
  Object.assign(new Error(message), { code })

const isSilence = (error: unknown): error is Error => errorCode(error) === 'ETIMEOUT'
