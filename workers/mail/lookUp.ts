import { Resolver } from 'node:dns/promises'
import { LRUCache } from 'lru-cache'
import type { Dns } from './dns.ts'

/** Asks the DNS as node:dns does: errors have a `code`, and a name without such a record is ENOTFOUND or ENODATA. */
export type LookUp = (name: string, type: string) => Promise<string[] | string[][] | object>

const TIMEOUT_MS = 2_000
const TRIES = 2
/** Shorter than the time to live of most records: a change is felt soon. Resolvers keep answers for longer. */
const KEPT_MS = 30_000
/** Senders choose what is looked up, and how long its answers are. */
const KEPT_BYTES = 16 * 1024 * 1024

type Answer = { records: Awaited<ReturnType<LookUp>> } | { none: Error }

/**
 * Looks up what a message is authenticated by, each name once in half a minute: whoever sends many messages has the same
 * records for all of them.
 * @param dns answers for TXT, which Bun's resolver breaks at every 255 bytes: no DKIM key would be whole.
 * @param servers `address[:port]` each; the system's when there is none.
 */
export function createLookUp(dns: Pick<Dns, 'txt'>, servers: readonly string[]): LookUp {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)
  const ask = async (name: string, type: string): Promise<Answer> => {
    try {
      if (type !== 'TXT') return { records: await resolver.resolve(name, type) }
      const texts = await dns.txt(name)
      if (texts.length > 0) return { records: texts.map((text) => [text]) }
      return { none: errorOf(`no TXT record: ${name}`, 'ENOTFOUND') }
    } catch (error) {
      if (isNone(error)) return { none: error }
      throw error
    }
  }
  const kept = new LRUCache<string, Answer, { name: string; type: string }>({
    ttl: KEPT_MS,
    maxSize: KEPT_BYTES,
    sizeCalculation: (answer, key) => key.length + JSON.stringify(answer).length,
    // A question that is answered after its place was needed is an answer nevertheless.
    ignoreFetchAbort: true,
    fetchMethod: (_key, _stale, { context }) => ask(context.name, context.type),
  })
  return async (name, type) => {
    const answer = await kept.forceFetch(`${type} ${name.toLowerCase()}`, {
      context: { name, type },
    })
    if ('none' in answer) throw answer.none
    return answer.records
  }
}

const errorOf = (message: string, code: string): Error =>
  Object.assign(new Error(message), { code })

const isNone = (error: unknown): error is Error =>
  error instanceof Error &&
  'code' in error &&
  (error.code === 'ENOTFOUND' || error.code === 'ENODATA')
