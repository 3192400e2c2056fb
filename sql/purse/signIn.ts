/** Signs in with a purse (a project's wallet) at sellers that the purse has paid (Sign-In with Ethereum). */

import { covers } from '../../shared/purse/mandate.ts'
import type { PaymentHeader } from '../../shared/purse/paymentHeader.ts'
import { type SignIn, signInHeader } from '../../shared/purse/signIn.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import { type Pool, transaction } from '../db.ts'
import { lockMandates } from './mandates.ts'
import { lockPurse } from './purchases/reserve.ts'
import { purseSigner } from './purses.ts'

/**
 * Signs in with a purse at a seller's host. The purse must have paid this host before, because a sign-in reveals the
 * purse's address. A stopped purse does not sign in. Neither does a purse whose mandate (spending limit) for the host
 * is stopped or missing.
 * @param at.url is the URL at which the function signs in, without query and fragment.
 * @returns null if the function does not sign in at the URL.
 */
export function signInAt(
  pool: Pool,
  {
    id,
    challenge,
    at,
    keyring,
  }: {
    id: string
    challenge: SignIn
    at: { url: string; network: string }
    keyring: Keyring
  },
): Promise<PaymentHeader | null> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ project_id: string; host: string }>(
      `select u.project_id, u.host from purchases u join projects j on j.id = u.project_id
       where u.id = $1 and u.state = 'asking' and u.kind = 'payment' and j.deleted_at is null for no key update of u`,
      [id],
    )
    const purchase = rows[0]
    if (purchase === undefined) return null
    const { project_id: projectId, host } = purchase
    const purse = await lockPurse(db, projectId)
    if (purse === null || purse.isFrozen) return null
    const mandates = (await lockMandates(db, projectId)).filter((one) =>
      covers(one, { host, ...at }),
    )
    if (mandates.length === 0 || mandates.some(({ state }) => state === 'frozen')) return null
    const { rowCount } = await db.query(
      `update purchases u set signed_in_at = clock_timestamp()
       where u.id = $1 and exists (
         select from purchases p where p.project_id = u.project_id and p.host = u.host and p.payer = $2
           and p.kind = 'payment' and p.money = 'spent')`,
      [id, purse.address],
    )
    if (rowCount === 0) return null
    const signer = await purseSigner(db, keyring, { projectId, address: purse.address })
    return await signInHeader(challenge, signer)
  })
}
