import type { Evidence, PurchaseRecord, UsedAuthorization } from './evidence.ts'
import type { Bought, Ledger } from './ledger.ts'

/**
 * Checks that one Idempotency-Key leads to one purchase, that each purchase is paid at most once, and that no mandate
 * (spending limit) is exceeded. The reserved amount must equal the spent, released and open amounts together, to the
 * atomic unit. The spent amount must equal the amount that the chain shows.
 */
export function auditPurse(ledger: Ledger, { purse, used }: Evidence): string[] {
  const { purchases, mandate, address, paidAtomic } = purse
  const own = used.filter(({ payer }) => payer.toLowerCase() === address)
  const known = new Set(purchases.map(({ nonce }) => nonce))
  const sum = (money: PurchaseRecord['money']) =>
    purchases
      .filter((one) => one.money === money)
      .reduce((total, one) => total + BigInt(one.amountAtomic ?? 0), 0n)
  const open = BigInt(mandate.reserved) - BigInt(mandate.spent) - BigInt(mandate.released)
  return [
    ...ledger.purchases.flatMap((bought) => auditBought(bought, purchases)),
    ...purchases.flatMap((purchase) => auditPurchase(purchase, own)),
    ...own
      .filter(({ nonce }) => !known.has(nonce))
      .map(({ nonce }) => `purse: ${nonce} was used, and no purchase has it`),
    ...differs('spent', mandate.spent, paidAtomic, 'the chain'),
    ...differs('spent', mandate.spent, sum('spent'), 'the purchases'),
    ...differs('released', mandate.released, sum('released'), 'the purchases'),
    ...differs('open', open, sum('open'), 'the purchases'),
    ...(BigInt(mandate.spent) + open > BigInt(mandate.limit)
      ? [`purse: ${mandate.spent} spent and ${open} open pass the limit ${mandate.limit}`]
      : []),
  ]
}

const differs = (
  name: string,
  mandate: string | bigint,
  other: string | bigint,
  source: string,
): string[] =>
  BigInt(mandate) === BigInt(other)
    ? []
    : [`purse: ${name} is ${mandate} in the mandate, and ${other} by ${source}`]

function auditBought(
  { key, told, purchaseIds, refusal }: Bought,
  purchases: readonly PurchaseRecord[],
): string[] {
  const ids = new Set(purchaseIds)
  const records = purchases.filter((one) => one.key === key)
  return [
    ...(told === 'refused' ? [`purse: ${key} was refused: ${refusal}`] : []),
    ...(ids.size > 1 ? [`purse: ${key} was answered with ${ids.size} purchases`] : []),
    ...(records.length > 1 ? [`purse: ${key} has ${records.length} purchases`] : []),
    ...(purchaseIds[0] !== undefined && records[0]?.id !== purchaseIds[0]
      ? [`purse: ${key} was answered with ${purchaseIds[0]}, which is not there`]
      : []),
  ]
}

function auditPurchase(
  { id, ended, money, nonce, amountAtomic, txHash }: PurchaseRecord,
  own: readonly UsedAuthorization[],
): string[] {
  const uses = own.filter((use) => use.nonce === nonce)
  const [use] = uses
  const findings: string[] = []
  if (!ended) findings.push(`purse: ${id} has no end`)
  if (uses.length > 1) findings.push(`purse: ${id} was paid ${uses.length} times`)
  if (use === undefined) {
    if (money === 'spent') findings.push(`purse: ${id} is spent and no money moved`)
  } else if (money !== 'spent') findings.push(`purse: ${id} was paid and is ${money}`)
  else if (use.amountAtomic !== amountAtomic || use.txHash !== txHash) {
    findings.push(
      `purse: ${id} says ${amountAtomic} by ${txHash}, the chain ${use.amountAtomic} by ${use.txHash}`,
    )
  }
  return findings
}
