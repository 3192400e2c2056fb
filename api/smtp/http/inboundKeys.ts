import type { Config } from '../../../shared/config/config.ts'
import { domainSecret } from '../../../shared/mail/http/signedMail.ts'
import type { Pool } from '../../../sql/db.ts'
import {
  type InboundSecret,
  listAllInboundSecrets,
} from '../../../sql/mail/domains/inboundSecrets.ts'

/** Sets for how many milliseconds a revoked inbound secret of a domain may stay valid. */
const FRESH_MS = 30_000
/**
 * Sets the shortest pause in milliseconds between two database reads that search for an unknown key id. Otherwise a
 * client that guesses key ids could put load on the database.
 */
const AGAIN_MS = 1_000
/** Sets for how many milliseconds the listener accepts a known inbound secret while the database is unreachable. */
const STALE_MS = 24 * 60 * 60_000

const DOMAIN_KEY = /^([a-z0-9.-]{1,253})#\d{1,9}$/

/** Describes an inbound key (a key for mail over HTTP): its secrets and its domain. */
export type InboundKey = {
  /**
   * Holds the secrets that belong to the inbound key. A signature is valid if it was made with any one of these
   * secrets.
   */
  secrets: Uint8Array[]
  /** Names the only domain for which the inbound key may deliver mail. Null means every domain. */
  domain: string | null
}

type Known = { byId: Map<string, InboundSecret>; readMs: number }

/**
 * Finds the inbound secrets (keys for mail over HTTP) that belong to a key id. A key id is an `ID` of INBOUND_SECRETS,
 * or `DOMAIN#VERSION`.
 */
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
   * Finds an inbound key by its id. @returns `null` if no inbound key has this id.
   * @throws the error of the database if the database is unreachable and the inbound key is not in memory.
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

  /**
   * Reads all inbound keys from the database again. The listener pauses between two such reads, so it may find a new
   * key only after a moment.
   */
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
