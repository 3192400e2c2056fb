import type { Queryable } from '../../db.ts'

/** Stores the code hashes of contract wallets that have made a payment. */
export async function recordWalletCodes(
  db: Queryable,
  paymentIds: readonly string[],
): Promise<void> {
  if (paymentIds.length === 0) return
  await db.query({
    name: 'record-wallet-codes',
    text: `
      insert into wallet_codes as c (chain_id, code, payer, is_shared)
      select p.chain_id, t.payer_code, min(lower(p.payer)), count(distinct lower(p.payer)) > 1
      from chain_transactions t join payments p on p.id = t.payment_id and p.tx_hash = t.hash
      where t.payment_id = any ($1) and t.payer_code is not null
      group by p.chain_id, t.payer_code order by p.chain_id, t.payer_code
      on conflict (chain_id, code) do update set is_shared = true
      where not c.is_shared and (c.payer <> excluded.payer or excluded.is_shared)`,
    values: [paymentIds],
  })
}
