/** Stores the passkeys of people, and the challenges that no passkey has signed yet. */
import { hashSecret } from '../../../shared/secretHash.ts'
import type { Queryable } from '../../db.ts'
import { replaceable } from '../replaceable.ts'

/** Sets the maximum number of passkeys of a person. */
const PASSKEYS_MAX = 20
const CHALLENGE_MINUTES = 5
/**
 * Sets the maximum number of stored passkey challenges, including expired ones that the next cleaning deletes. The
 * number is limited, because anybody can ask for any number of challenges.
 */
const CHALLENGES_MAX = 20_000
/**
 * Sets the number of minutes for which a passkey challenge is safe from replacement by a challenge of another network,
 * while no network has many challenges. Therefore an attacker with many networks can shorten the time for a sign-in,
 * but can block nobody.
 */
const PROTECTED_MINUTES = 2

/** Describes a passkey without its public key. */
export type Passkey = { id: string; name: string; createdAt: Date; usedAt: Date | null }

/** Holds the data with which the service checks the signature of a passkey. */
export type StoredPasskey = {
  credentialId: string
  personId: string
  /** Holds the passkey's public key as a COSE_Key. */
  publicKey: Buffer
  counter: number
  transports: string[]
}

/**
 * Stores a passkey challenge (random bytes to sign) for a browser. If too many challenges are stored, a new challenge
 * for a sign-in replaces another one. The first choice is an expired challenge, then one of the network with the most
 * challenges, then the oldest.
 * @param options.personId is the person who adds a passkey. Null means that a person signs in with a passkey.
 * @param options.network is the network of the caller.
 * @returns false if the new challenge may replace no other, because all are young and come from many networks. A person
 * who adds a passkey always gets a challenge.
 */
export async function storeChallenge(
  db: Queryable,
  {
    challenge,
    browser,
    personId,
    network,
  }: { challenge: string; browser: string; personId: string | null; network: string },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `with full_up as (
       select count(*) >= ${CHALLENGES_MAX} as is_full
       from (select from passkey_challenges limit ${CHALLENGES_MAX}) stored
     ), replaced as (
       delete from passkey_challenges
       where $3::text is null and (select is_full from full_up) and challenge_hash = (
         ${replaceable('passkey_challenges', {
           id: 'challenge_hash',
           since: 'expires_at',
           where: 'person_id is null',
           over: 'expires_at <= clock_timestamp()',
           idle: `expires_at < clock_timestamp() + interval '${CHALLENGE_MINUTES - PROTECTED_MINUTES} minutes'`,
         })})
       returning challenge_hash
     )
     insert into passkey_challenges (challenge_hash, browser_hash, person_id, network, expires_at)
     select $1, $2, $3, $4, clock_timestamp() + interval '${CHALLENGE_MINUTES} minutes'
     where $3::text is not null or not (select is_full from full_up) or exists (select from replaced)`,
    [hashSecret(challenge), hashSecret(browser), personId, network],
  )
  return rowCount === 1
}

/**
 * Takes a passkey challenge, which can be taken only once.
 * @returns false if the browser did not get the challenge, if the challenge was for another purpose, or if the
 * challenge has expired.
 */
export async function useChallenge(
  db: Queryable,
  { challenge, browser, personId }: { challenge: string; browser: string; personId: string | null },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `delete from passkey_challenges
     where challenge_hash = $1 and browser_hash = $2 and person_id is not distinct from $3
       and expires_at > clock_timestamp()`,
    [hashSecret(challenge), hashSecret(browser), personId],
  )
  return rowCount === 1
}

/** Lists the passkeys of a person, oldest first. */
export async function listPasskeys(db: Queryable, personId: string): Promise<Passkey[]> {
  const { rows } = await db.query<Passkey>(
    `select credential_id as id, name, created_at as "createdAt", used_at as "usedAt"
     from passkeys where person_id = $1 order by created_at, credential_id`,
    [personId],
  )
  return rows
}

/**
 * Adds a passkey. @returns false if anybody already has the passkey, or if the person already has {@link PASSKEYS_MAX}
 * passkeys.
 */
export async function addPasskey(
  db: Queryable,
  {
    credentialId,
    personId,
    publicKey,
    counter,
    transports,
    name,
  }: StoredPasskey & { name: string },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into passkeys (credential_id, person_id, public_key, counter, transports, name)
     select $1, $2, $3, $4, $5, $6
     where (select count(*) from passkeys where person_id = $2) < ${PASSKEYS_MAX}
     on conflict do nothing`,
    [credentialId, personId, publicKey, counter, transports, name],
  )
  return rowCount === 1
}

/** Removes a passkey of a person. */
export async function removePasskey(
  db: Queryable,
  personId: string,
  credentialId: string,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'delete from passkeys where credential_id = $1 and person_id = $2',
    [credentialId, personId],
  )
  return rowCount === 1
}

/** Finds a passkey. @returns null if the passkey does not exist. */
export async function findPasskey(
  db: Queryable,
  credentialId: string,
): Promise<StoredPasskey | null> {
  const { rows } = await db.query<Omit<StoredPasskey, 'counter'> & { counter: string }>(
    `select credential_id as "credentialId", person_id as "personId", public_key as "publicKey", counter, transports
     from passkeys where credential_id = $1`,
    [credentialId],
  )
  return rows[0] === undefined ? null : { ...rows[0], counter: Number(rows[0].counter) }
}

/**
 * Records that a passkey was used for a sign-in.
 * @returns false if another use of the passkey has changed the signature counter in the meantime (WebAuthn §7.2 step
 * 22).
 */
export async function recordPasskeyUse(
  db: Queryable,
  { credentialId, before, after }: { credentialId: string; before: number; after: number },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `update passkeys set counter = $3, used_at = clock_timestamp()
     where credential_id = $1 and (counter = $2 or $3 = 0)`,
    [credentialId, before, after],
  )
  return rowCount === 1
}
