/** Finds the public keys of sellers in their DID documents (did:web, DID Core §5.2). */
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { FindKey, KnownKey } from '../../shared/purse/offerReceipt.ts'
import { guardedRequest, type OutboundPolicy } from '../http/guardedRequest.ts'

/**
 * Limits in milliseconds how long a purchase waits for a DID document. The service fetches each DID document at most
 * once in ten minutes.
 */
const TIMEOUT_MS = 2_000
const KEPT = { max: 1_000, ttl: 10 * 60_000 }
const MAX_DOCUMENT_BYTES = 64 * 1024

const documentSchema = z.object({
  verificationMethod: z
    .array(
      z.looseObject({
        id: z.string(),
        publicKeyJwk: z
          .looseObject({ kty: z.enum(['OKP', 'EC', 'RSA']) })
          .optional()
          .catch(undefined),
      }),
    )
    .max(64),
})

type Methods = z.output<typeof documentSchema>['verificationMethod']

const DID_WEB = /^did:web:([A-Za-z0-9.%-]{1,260})((?::[A-Za-z0-9._~%-]{1,128}){0,8})$/

/** Returns the URL of the DID document of a did:web identifier (did:web §2.5.2). Returns `null` for any other DID. */
function documentUrl(did: string, allowLoopback: boolean): string | null {
  const [, domain, path] = DID_WEB.exec(did) ?? []
  if (domain === undefined) return null
  const host = domain.replace(/%3A/i, ':')
  if (/%|:.*:/.test(host)) return null
  const isLoopback = /^(?:localhost|127\.0\.0\.1)(?::|$)/.test(host)
  const scheme = allowLoopback && isLoopback ? 'http' : 'https'
  const folder = path === '' || path === undefined ? '/.well-known' : path.replaceAll(':', '/')
  return `${scheme}://${host}${folder}/did.json`
}

/**
 * Finds the public key of a host by its key id (`kid`). A public key belongs to the host if the DID document of the
 * host lists the key.
 */
export function createSellerKeys(
  policy: OutboundPolicy & { ca?: string },
): (host: string) => FindKey {
  const kept = new LRUCache<string, { methods: Methods | null }>(KEPT)

  async function methodsOf(did: string): Promise<Methods | null> {
    const url = documentUrl(did, policy.allowPrivate)
    if (url === null) return null
    const before = kept.get(url)
    if (before !== undefined) return before.methods
    const methods = await read(url)
    kept.set(url, { methods })
    return methods
  }

  async function read(url: string): Promise<Methods | null> {
    const answer = await guardedRequest({
      ...policy,
      url,
      method: 'GET',
      timeoutMs: TIMEOUT_MS,
      responseBytesMax: MAX_DOCUMENT_BYTES,
    })
    if (!answer.ok || answer.status !== 200 || answer.truncated) return null
    try {
      return documentSchema.parse(JSON.parse(answer.bodyPrefix)).verificationMethod
    } catch {
      return null
    }
  }

  return (host) =>
    async (kid): Promise<KnownKey | null> => {
      const [did = ''] = kid.split('#')
      const methods = await methodsOf(did)
      // A relative DID URL such as `#key` belongs to the DID of the document (DID Core §3.2.2).
      const jwk = methods?.find(
        ({ id }) => id === kid || (id.startsWith('#') && did + id === kid),
      )?.publicKeyJwk
      if (jwk === undefined) return null
      const ofHost = `did:web:${host.replace(':', '%3A')}`
      const own = await methodsOf(ofHost)
      const isOfHost = own?.some(({ publicKeyJwk }) => publicKeyJwk && isSameKey(publicKeyJwk, jwk))
      return { jwk, isOfHost: isOfHost === true }
    }
}

const MEMBERS = ['kty', 'crv', 'x', 'y', 'n', 'e']
/**
 * Tells whether two public keys are the same. The function compares the members that identify a public key (RFC 7638
 * §3.2).
 */
const isSameKey = (left: Record<string, unknown>, right: Record<string, unknown>): boolean =>
  MEMBERS.every((name) => left[name] === right[name])
