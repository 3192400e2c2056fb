import type { Config } from '../../../shared/config/config.ts'
import { domainSecret } from '../../../shared/mail/http/signedMail.ts'
import type { Pool } from '../../../sql/db.ts'
import { type InboundSecret, listInboundSecrets } from '../../../sql/mail/domains/inboundSecrets.ts'

/** A revoked secret of a domain works this long at most. */
const CACHE_MS = 30_000
/** While the database is away, a known secret works on for this long. */
const STALE_MS = 24 * 60 * 60_000
const DOMAINS_MAX = 10_000

/** What a key of mail over HTTP may do. */
export type InboundKey = {
  /** One of them signed. */
  secrets: Uint8Array[]
  /** The one domain that it delivers to; null: every domain. */
  domain: string | null
}

/** Finds the secrets behind a key id: `ID` of INBOUND_SECRETS, or `DOMAIN#VERSION`. */
export class InboundKeys {
  readonly #pool: Pool
  readonly #secrets: NonNullable<Config['smtp']['http']>['secrets']
  readonly #domains = new Map<string, { readMs: number; secrets: InboundSecret[] }>()

  constructor(pool: Pool, secrets: NonNullable<Config['smtp']['http']>['secrets']) {
    this.#pool = pool
    this.#secrets = secrets
  }

  /**
   * @returns null: no such key.
   * @throws the database's error, when it is away and the key was never seen.
   */
  async find(keyId: string): Promise<InboundKey | null> {
    const global = this.#secrets.find(({ id }) => id === keyId)
    if (global !== undefined) return { secrets: [global.secret], domain: null }
    const domain = /^([a-z0-9.-]{1,253})#\d{1,9}$/.exec(keyId)?.[1]
    if (domain === undefined) return null
    const found = (await this.#secretsOf(domain, keyId)).find(
      (secret) => secret.keyId === keyId && isValid(secret),
    )
    if (found === undefined) return null
    return { secrets: this.#secrets.map(({ secret }) => domainSecret(secret, keyId)), domain }
  }

  async #secretsOf(domain: string, keyId: string): Promise<InboundSecret[]> {
    const known = this.#domains.get(domain)
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : performance.now() - known.readMs
    const isNew = known?.secrets.every((secret) => secret.keyId !== keyId) ?? true
    if (known !== undefined && !isNew && ageMs < CACHE_MS) return known.secrets
    try {
      const secrets = await listInboundSecrets(this.#pool, domain)
      if (this.#domains.size >= DOMAINS_MAX) this.#domains.clear()
      // A stranger's guesses do not fill the memory.
      if (secrets.length > 0) this.#domains.set(domain, { readMs: performance.now(), secrets })
      else this.#domains.delete(domain)
      return secrets
    } catch (error) {
      if (known === undefined || ageMs > STALE_MS) throw error
      return known.secrets
    }
  }
}

const isValid = ({ expiresAt }: InboundSecret) =>
  expiresAt === null || expiresAt.getTime() > Date.now()
