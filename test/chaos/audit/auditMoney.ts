import type { Evidence } from './evidence.ts'
import type { Ledger, Paid } from './ledger.ts'

/**
 * Checks that each payment on the chain got the response `ok: true` for exactly one Idempotency-Key, and that a payment
 * that is not on the chain never got this response.
 */
export function auditMoney(ledger: Ledger, evidence: Evidence): string[] {
  const { payments, transferCount } = evidence
  // This function skips the payments from the purse (wallet), because `auditPurse` checks them.
  const used = evidence.used.filter(({ payer }) => payer.toLowerCase() !== evidence.purse.address)
  const moved = used.filter(({ amountAtomic }) => amountAtomic !== null)
  const known = new Set(ledger.payments.map(({ nonce }) => nonce))
  const stray = used.filter(({ nonce }) => !known.has(nonce))
  return [
    ...ledger.payments.flatMap((paid) => auditPayment(paid, evidence)),
    ...stray.map(({ nonce }) => `money: ${nonce} was used and no client signed it`),
    ...(transferCount === moved.length
      ? []
      : [`money: ${transferCount} transfers for ${moved.length} used authorizations`]),
    ...payments
      .filter(({ status }) => status === 'verified')
      .map(({ id }) => `money: payment ${id} is neither settled nor failed`),
  ]
}

/** Lists the refusal reasons that a payer causes: the payment expired, or another caller redeemed it first. */
const FAIR_REFUSALS = new Set([
  'invalid_exact_evm_payload_authorization_valid_before',
  'duplicate_settlement',
])

function auditPayment(paid: Paid, { used, payments }: Evidence): string[] {
  const { nonce, told, answers } = paid
  const name = `money: ${nonce.slice(0, 18)}`
  const uses = used.filter((use) => use.nonce === nonce)
  const granted = answers.filter(({ ok }) => ok)
  const keys = new Set(granted.map(({ key }) => key))
  const results = new Set(granted.map(({ paymentId, txHash }) => `${paymentId} ${txHash}`))
  const records = payments.filter((payment) => payment.nonce === nonce)
  const findings: string[] = []
  if (uses.length > 1) findings.push(`${name} was paid ${uses.length} times`)
  if (keys.size > 1) findings.push(`${name} was granted under ${keys.size} keys`)
  if (results.size > 1) findings.push(`${name} has ${results.size} different grants`)
  if (records.length > 1) findings.push(`${name} has ${records.length} payment records`)
  for (const { ok, reason } of answers) {
    if (!ok && !FAIR_REFUSALS.has(reason ?? '')) findings.push(`${name} was refused: ${reason}`)
  }
  const [use] = uses
  const [grant] = granted
  if (grant !== undefined) {
    if (use === undefined) findings.push(`${name} has ok: true and no money moved`)
    else if (use.amountAtomic !== paid.amountAtomic) {
      findings.push(`${name} moved ${use.amountAtomic}, not ${paid.amountAtomic}`)
    } else if (use.txHash !== grant.txHash) {
      findings.push(`${name} was granted for ${grant.txHash} and settled by ${use.txHash}`)
    }
    if (records[0]?.status !== 'settled') {
      findings.push(`${name} has ok: true and the record is ${records[0]?.status}`)
    }
  } else if (use !== undefined) {
    const last = answers.at(-1)?.reason ?? 'no answer'
    findings.push(`${name} was paid and has no ok: true (${told}, last: ${last})`)
  }
  return findings
}
