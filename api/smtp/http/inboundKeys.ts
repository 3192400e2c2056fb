import type { Config } from '../../../shared/config/config.ts'
import { domainSecret } from '../../../shared/mail/http/signedMail.ts'
import type { Pool } from '../../../sql/db.ts'
import {
  type InboundSecret,
  listAllInboundSecrets,
} from '../../../sql/mail/domains/inboundSecrets.ts'

/** A revoked secret of a domain works this long at most. */
const FRESH_MS = 30_000
/** An unknown key asks the database at most this often: strangers' guesses are no load for it. */
const AGAIN_MS = 1_000
/** While the database is away, a known secret works on for this long. */
const STALE_MS = 24 * 60 * 60_000

const DOMAIN_KEY = /^([a-z0-9.-]{1,253})#\d{1,9}$/

/** What a key of mail over HTTP may do. */
export type InboundKey = {
  /** One of them signed. */
  secrets: Uint8Array[]
  /** The one domain that it delivers to; null: every domain. */
  domain: string | null
}

type Known = { byId: Map<string, InboundSecret>; readMs: number }

/** Finds the secrets behind a key id: `ID` of INBOUND_SECRETS, or `DOMAIN#VERSION`. */
export class InboundKeys {
  readonly #pool: Pool
  readonly #secrets: NonNullable<Config['smtp']['http']>['secrets']
  #known: Known | null = null
  #reading: Promise<Known> | null = null

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
    const domain = DOMAIN_KEY.exec(keyId)?.[1]
    if (domain === undefined) return null
    const found = await this.#domainKey(keyId)
    if (found === undefined || !isValid(found)) return null
    return { secrets: this.#secrets.map(({ secret }) => domainSecret(secret, keyId)), domain }
  }

  async #domainKey(keyId: string): Promise<InboundSecret | undefined> {
    const known = this.#known
    const ageMs = known === null ? Number.POSITIVE_INFINITY : performance.now() - known.readMs
    const found = known?.byId.get(keyId)
    if (found !== undefined && ageMs < FRESH_MS) return found
    try {
      this.#reading ??= this.#read(ageMs).finally(() => {
        this.#reading = null
      })
      return (await this.#reading).byId.get(keyId)
    } catch (error) {
      if (found === undefined || ageMs > STALE_MS) throw error
      return found
    }
  }

  /** A key that was made just now is found after a moment. */
  async #read(ageMs: number): Promise<Known> {
    if (ageMs < AGAIN_MS) await Bun.sleep(AGAIN_MS - ageMs)
    const secrets = await listAllInboundSecrets(this.#pool)
    this.#known = {
      byId: new Map(secrets.map((secret) => [secret.keyId, secret])),
      readMs: performance.now(),
    }
    return this.#known
  }
}

const isValid = ({ expiresAt }: InboundSecret) =>
  expiresAt === null || expiresAt.getTime() > Date.now()
