import { type Pool, type Queryable, transaction } from '../../db.ts'

/**
 * Describes a domain's inbound secret, with which a mail service delivers mail by HTTP. The description does not
 * contain the value of the secret.
 */
export type InboundSecret = {
  /** Holds the id of the secret, in the form `DOMAIN#VERSION`. */
  keyId: string
  createdAt: Date
  /**
   * Holds the time when the secret expires. Null means that the secret is valid until an operator revokes or replaces
   * the secret.
   */
  expiresAt: Date | null
}

/** Holds how long the previous secret of a domain stays valid after the creation of a new secret. */
const OVERLAP = '24 hours'

type Row = { domain: string; version: number; created_at: Date; expires_at: Date | null }

const toSecret = (row: Row): InboundSecret => ({
  keyId: `${row.domain}#${row.version}`,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
})

/**
 * Creates a domain's inbound secret, with which a mail service delivers the domain's mail by HTTP. The previous secret
 * of the domain expires after a day.
 */
export async function newInboundSecret(pool: Pool, domain: string): Promise<InboundSecret> {
  return await transaction(pool, async (db) => {
    await db.query(`select pg_advisory_xact_lock(hashtextextended('inbound_secrets ' || $1, 0))`, [
      domain,
    ])
    await db.query(
      `update inbound_secrets set expires_at = least(expires_at, clock_timestamp() + interval '${OVERLAP}')
       where domain = $1`,
      [domain],
    )
    const { rows } = await db.query<Row>(
      `insert into inbound_secrets (domain, version)
       select $1, coalesce(max(version), 0) + 1 from inbound_secrets where domain = $1
       returning *`,
      [domain],
    )
    return toSecret(rows[0]!)
  })
}

/** Lists a domain's valid inbound secrets (for the delivery of mail by HTTP), newest first. */
export async function listInboundSecrets(db: Queryable, domain: string): Promise<InboundSecret[]> {
  const { rows } = await db.query<Row>(
    `select * from inbound_secrets where domain = $1 and (expires_at is null or expires_at > clock_timestamp())
     order by version desc`,
    [domain],
  )
  return rows.map(toSecret)
}

/**
 * Sets the maximum number of domain secrets that a listener process holds in memory. This number is high enough,
 * because an operator creates each secret by hand.
 */
const ALL_MAX = 20_000

/**
 * Lists the valid inbound secrets of all domains (for the delivery of mail by HTTP), without the values of the secrets.
 */
export async function listAllInboundSecrets(db: Queryable): Promise<InboundSecret[]> {
  const { rows } = await db.query<Row>(
    `select * from inbound_secrets where expires_at is null or expires_at > clock_timestamp()
     order by created_at desc limit ${ALL_MAX}`,
  )
  return rows.map(toSecret)
}

/** Revokes at once every inbound secret of a domain (for the delivery of mail by HTTP). */
export async function revokeInboundSecrets(db: Queryable, domain: string): Promise<void> {
  await db.query(
    `update inbound_secrets set expires_at = clock_timestamp()
     where domain = $1 and (expires_at is null or expires_at > clock_timestamp())`,
    [domain],
  )
}
