/**
 * Tests the verdict on a payment that a caller presents: to which stored payment the request belongs, why it is
 * refused, and how long the caller waits.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import pino from 'pino'
import { encodeAbiParameters, type Hex } from 'viem'
import type { Services } from '../../../../../api/http/services.ts'
import { startWaiters, type Waiters } from '../../../../../api/http/waiters.ts'
import type { Offer } from '../../../../../api/till/payments/offer.ts'
import {
  claimOf,
  judge,
  settleWithin,
} from '../../../../../api/till/payments/redeem/settleWithin.ts'
import { createTillBatchers } from '../../../../../api/till/payments/tillBatchers.ts'
import type { Authorization, PaymentPayload } from '../../../../../shared/till/x402.ts'
import { deleteProject } from '../../../../../sql/account/projects/deleteProject.ts'
import {
  findCheck,
  passCheck,
  refuseCheck,
} from '../../../../../sql/till/payments/paymentChecks.ts'
import type { NewClaim } from '../../../../../sql/till/settle/claims.ts'
import { failPayment, notifyChanged } from '../../../../../sql/till/settle/settlements.ts'
import { createTestDatabase, type TestDatabase } from '../../../../support/database/database.ts'
import {
  compact,
  MAGIC,
  payer,
  payment as paymentOf,
  payTo,
  SEPOLIA,
  withSignature,
} from '../../../../support/till/headers/payment.ts'
import {
  newHash,
  newPayment,
  newProject,
  newTransaction,
  settle,
} from '../../../../support/till/tillRows.ts'
import { waitFor } from '../../../../support/waitFor.ts'

const RESOURCE = 'https://api.example.com/report'
const WALLET = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const FACTORY = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'

let database: TestDatabase
let pool: TestDatabase['pool']
let waiters: Waiters
let projectId: string
let refusals = 0
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  waiters = startWaiters(database.url, pino({ level: 'silent' }))
  projectId = await newProject(pool)
})
afterAll(async () => {
  await waiters.stop()
  await database[Symbol.asyncDispose]()
})

/**
 * Returns the database pool, the limits and the helpers on which the verdict on a payment depends. Without `daily`, the
 * project has no daily limit on its settlements.
 */
function services(daily: number | null = null): Services {
  const limits = { dailySettlements: daily, dailyGas: null }
  const metrics = { settlementRefused: () => refusals++ }
  return {
    pool,
    config: { limits },
    metrics,
    waiters,
    ...createTillBatchers(pool, limits),
  } as never
}

const offer = (changes: Partial<Offer> = {}, project = projectId): Offer => ({
  seller: { projectId: project, payTo, network: 'base-sepolia', chainId: SEPOLIA.chainId },
  ...{ endpointId: null, verification: null, matchKey: null, resource: RESOURCE },
  ...{ resourceSource: 'seller', amountAtomic: 10_000n, description: 'A report' },
  ...{ metadata: {}, discoverable: false },
  ...changes,
})

/** Returns a signed payment that has its own nonce and is valid until the year 2096. */
const signed = (changes: Partial<Authorization> = {}): Promise<PaymentPayload> =>
  paymentOf({ validAfter: 0n, validBefore: 4_000_000_000n, nonce: newHash(), ...changes })
/** Returns a payment whose signature only the contract at the payer's address can verify. */
const ofWallet = (changes: Partial<Authorization> = {}) => signed({ from: WALLET, ...changes })

type Given = { offer?: Offer; forMs?: number; daily?: number | null }

/** Presents a payment to the service, and waits `forMs` milliseconds for its end. */
const present = async (
  payload: PaymentPayload,
  { offer: given = offer(), forMs = 0, daily = null }: Given = {},
) => {
  const judged = await judge(given, { ok: true, payload })
  return settleWithin(services(daily), given, judged, performance.now() + forMs)
}

/**
 * Returns the outcome of a presented payment as text. If the payment is refused, the text also names the stage and the
 * reason.
 */
async function verdictOn(payload: PaymentPayload, given: Given = {}): Promise<string> {
  const outcome = await present(payload, given)
  return outcome.kind === 'refused' ? `${outcome.stage} ${outcome.reason}` : outcome.kind
}

/** Waits until the authorization has a stored payment or a stored check, and returns the row's id. */
const stored = (payload: PaymentPayload, table: 'payments' | 'payment_checks'): Promise<string> =>
  waitFor(`a row of ${table}`, async () => {
    const nonce = table === 'payments' ? 'authorization_nonce' : `claim->>'authorization_nonce'`
    const { rows } = await pool.query(`select id from ${table} where ${nonce} = $1`, [
      payload.payload.authorization.nonce,
    ])
    return rows[0]?.id
  })

/** Stores a payment for an authorization directly, without checking its signature or its time. */
const claimed = (
  { payload: { authorization, signature } }: PaymentPayload,
  changes: Partial<NewClaim> = {},
) =>
  newPayment(pool, {
    ...{ projectId, resourceUrl: RESOURCE, amountAtomic: authorization.value, signature },
    ...{ payer: authorization.from, recipient: authorization.to, nonce: authorization.nonce },
    ...{ validAfter: authorization.validAfter, validBefore: authorization.validBefore },
    ...changes,
  })

describe('if a caller presents a payment, the service claims (stores) it once, waits for the settlement, and reports the result', () => {
  test('a payment is refused with the reason if it cannot be decoded, or if its amount or its time does not meet the seller’s terms', async () => {
    const decoded = { ok: false, x402Version: 1, reason: 'invalid_payload', detail: '' } as const
    expect(await settleWithin(services(), offer(), decoded, 0)).toEqual({
      kind: 'refused',
      stage: 'verify',
      reason: 'invalid_payload',
      payment: null,
    })
    expect(await verdictOn(await signed({ value: 9_999n }))).toBe(
      'verify invalid_exact_evm_payload_authorization_value',
    )
    expect(await verdictOn(await signed({ validBefore: 1n }))).toBe(
      'verify invalid_exact_evm_payload_authorization_valid_before',
    )
  })

  test('if a payment is presented twice, the service claims (stores) it once, and reports it as pending when the time limit ends', async () => {
    const payload = await signed()
    const first = await present(payload)
    expect(first).toMatchObject({
      kind: 'pending',
      payment: { projectId, resourceUrl: RESOURCE, amountAtomic: 10_000n, state: 'verified' },
    })
    expect(await present(payload)).toMatchObject({ payment: { id: (first as any).payment.id } })
    await newTransaction(pool, (first as any).payment.id)
    expect(await verdictOn(payload)).toBe('pending')
  })

  test('if several callers wait for one payment, all learn that it is settled as soon as the transfer is on the chain', async () => {
    const payload = await signed()
    const waiting = [
      present(payload, { forMs: 20_000 }),
      stored(payload, 'payments').then(() => present(payload, { forMs: 20_000 })),
    ]
    const id = await stored(payload, 'payments')
    const { hash } = await newTransaction(pool, id)
    await notifyChanged(pool, [id])
    await settle(pool, id, hash, { receiptText: '{"of":"it"}' })
    for (const outcome of await Promise.all(waiting)) {
      expect(outcome).toMatchObject({
        kind: 'settled',
        payment: { id, txHash: hash, signedReceipt: '{"of":"it"}' },
      })
    }
    expect(await verdictOn(payload, { forMs: 60_000 })).toBe('settled')
  })

  test('if a payment fails, the caller gets the stage and the reason of the failure', async () => {
    for (const stage of ['verify', 'settle'] as const) {
      const payload = await signed()
      const waiting = present(payload, { forMs: 20_000 })
      const paymentId = await stored(payload, 'payments')
      await failPayment(pool, { paymentId, stage, reason: 'insufficient_funds', detail: null })
      const refused = { kind: 'refused', stage, reason: 'insufficient_funds' }
      expect(await waiting).toMatchObject({ ...refused, payment: { id: paymentId } })
      expect(await present(payload)).toMatchObject({ ...refused, payment: { id: paymentId } })
      await pool.query('update payments set failure_stage = null where id = $1', [paymentId])
      expect(await verdictOn(payload)).toBe('settle insufficient_funds')
    }
  })

  test('if a payment is deleted while a caller waits for it, the waiting call throws an error', async () => {
    const payload = await signed()
    const waiting = present(payload, { forMs: 20_000 })
    const id = await stored(payload, 'payments')
    await pool.query('delete from payments where id = $1', [id])
    const thrown = waiting.catch((error) => error.message)
    await notifyChanged(pool, [id])
    expect(await thrown).toBe(`the payment ${id} is gone`)
  })

  test('a payment that is presented again for another resource, project or price is refused as a duplicate', async () => {
    const nonce = newHash()
    const payload = await signed({ nonce })
    expect(await verdictOn(payload)).toBe('pending')
    const resource = { offer: offer({ resource: `${RESOURCE}2` }) }
    const project = { offer: offer({}, await newProject(pool)) }
    for (const other of [resource, project]) {
      expect(await verdictOn(payload, other)).toBe('verify duplicate_settlement')
    }
    const dearer = await signed({ nonce, value: 20_000n })
    expect(await verdictOn(dearer, { offer: offer({ amountAtomic: 20_000n }) })).toBe(
      'verify duplicate_settlement',
    )
  })
})

describe('the service does not claim (store) a payment if a limit, a used payment identifier or a deleted project forbids it', () => {
  test('a payment that exceeds the daily limit is refused with this reason, and the service counts the refusal', async () => {
    const own = offer({}, await newProject(pool))
    expect(await verdictOn(await signed(), { offer: own, daily: 1 })).toBe('pending')
    const before = refusals
    expect(await verdictOn(await signed(), { offer: own, daily: 1 })).toBe(
      'verify settlement_limit_reached',
    )
    expect(refusals).toBe(before + 1)
  })

  test('a payment is refused if the payer already used its payment identifier for another payment', async () => {
    const named = async () => ({ ...(await signed()), paymentIdentifier: 'order-5521-of-ada' })
    const first = await named()
    expect(await verdictOn(first)).toBe('pending')
    expect(await verdictOn(first)).toBe('pending')
    expect(await verdictOn(await named())).toBe('verify payment_identifier_conflict')
  })

  test('a payment to a deleted project is refused with a general error', async () => {
    const gone = await newProject(pool)
    await deleteProject(pool, gone, null)
    const payload = await signed()
    for (const given of [payload, { ...payload, paymentIdentifier: 'order-5522-of-ada' }]) {
      expect(await verdictOn(given, { offer: offer({}, gone) })).toBe(
        'verify unexpected_verify_error',
      )
    }
  })
})

describe('a caller who presents an expired payment header gets only the outcome of an earlier payment with this header', () => {
  const EXPIRED = 'verify invalid_exact_evm_payload_authorization_valid_before'

  test('a caller with an expired payment header gets the stored payment that has exactly the same values', async () => {
    const payload = await signed({ validBefore: 1n })
    expect(await verdictOn(payload)).toBe(EXPIRED)
    const id = await claimed(payload)
    expect(await present(payload)).toMatchObject({ kind: 'pending', payment: { id } })
    const { hash } = await newTransaction(pool, id)
    await settle(pool, id, hash)
    expect(await verdictOn(payload)).toBe('settled')
  })

  test('a caller with an expired payment header gets no payment if one value differs from the stored payment', async () => {
    const others: Partial<NewClaim>[] = [
      { validAfter: 1n },
      { validBefore: 2n },
      { recipient: WALLET },
      { amountAtomic: 10_001n },
      { signature: `0x${'22'.repeat(65)}` },
      { resourceUrl: `${RESOURCE}2` },
      { projectId: await newProject(pool) },
    ]
    for (const other of others) {
      const payload = await signed({ validBefore: 1n })
      await claimed(payload, other)
      expect([other, await verdictOn(payload)]).toEqual([other, EXPIRED])
    }
  })

  test('an expired payment header finds its payment in every valid spelling of the signature', async () => {
    const payload = await signed({ validBefore: 1n })
    await claimed(payload)
    const { signature } = payload.payload
    const shortV: Hex = `0x${signature.slice(2, -2)}${signature.endsWith('1b') ? '00' : '01'}`
    for (const spelling of [compact(signature), shortV, wrapped(signature)]) {
      expect(await verdictOn(withSignature(payload, spelling))).toBe('pending')
    }
    expect(await verdictOn(withSignature(payload, '0x22'))).toBe(EXPIRED)
  })
})

/** Wraps the signature of a contract wallet in the form of ERC-6492. */
function wrapped(signature: Hex): Hex {
  const parts = [{ type: 'address' }, { type: 'bytes' }, { type: 'bytes' }] as const
  return `${encodeAbiParameters(parts, [FACTORY, '0x12', signature])}${MAGIC.slice(2)}`
}

describe('the service claims (stores) a payment of a contract wallet only if the chain accepts its signature', () => {
  /** Presents a payment, and then ends the payment's check on the chain as a worker would. */
  async function checked(
    payload: PaymentPayload,
    end: (checkId: string) => Promise<unknown>,
    given: Given = {},
  ) {
    const presented = present(payload, { forMs: 20_000, ...given })
    await end(await stored(payload, 'payment_checks'))
    const outcome = await presented
    return outcome.kind === 'refused' ? `${outcome.stage} ${outcome.reason}` : outcome.kind
  }
  /** Tells whether the service requested a check of the payment on the chain. */
  const isAsked = async ({ payload: { authorization } }: PaymentPayload) => {
    const sql = `select from payment_checks where claim->>'authorization_nonce' = $1`
    return (await pool.query(sql, [authorization.nonce])).rowCount !== 0
  }
  const pass = async (id: string) => passCheck(pool, (await findCheck(pool, id))!)
  const refuse = (id: string) => refuseCheck(pool, id, 'insufficient_funds')

  test('the service claims (stores) a contract wallet’s payment after the chain accepts it, and then settles it', async () => {
    const payload = await ofWallet()
    expect(
      await checked(payload, async (id) => {
        await pass(id)
        const paymentId = await stored(payload, 'payments')
        const { hash } = await newTransaction(pool, paymentId)
        await settle(pool, paymentId, hash)
      }),
    ).toBe('settled')
    expect(await verdictOn(payload)).toBe('settled')
  })

  test('if the chain refuses a contract wallet’s payment, the caller gets the chain’s reason, and the payment is not claimed (stored)', async () => {
    const payload = await ofWallet()
    expect(await checked(payload, refuse)).toBe('verify insufficient_funds')
    const sql = 'select from payments where authorization_nonce = $1'
    expect((await pool.query(sql, [payload.payload.authorization.nonce])).rows).toEqual([])
  })

  test('if a parallel call claimed (stored) the same payment, the caller gets its outcome, although the chain reports a used authorization', async () => {
    const payload = await ofWallet()
    const outcome = await checked(payload, async (id) => {
      const paymentId = await claimed(payload)
      const { hash } = await newTransaction(pool, paymentId)
      await settle(pool, paymentId, hash)
      await refuse(id)
    })
    expect(outcome).toBe('settled')
  })

  test('a payment is a duplicate if a parallel call claimed (stored) it with another signature or for another resource', async () => {
    for (const other of [
      { signature: `0x${'22'.repeat(65)}` as const },
      { resourceUrl: `${RESOURCE}2` },
    ]) {
      for (const end of [pass, refuse]) {
        const payload = await ofWallet()
        const outcome = await checked(payload, async (id) => {
          await claimed(payload, other)
          await end(id)
        })
        expect([other, outcome]).toEqual([other, 'verify duplicate_settlement'])
      }
    }
  })

  test('if a stored payment has the same authorization, a new payment is a duplicate, and the service does not ask the chain', async () => {
    const payload = await ofWallet()
    await claimed(payload, { resourceUrl: `${RESOURCE}2` })
    expect(await verdictOn(payload)).toBe('verify duplicate_settlement')
    expect(await isAsked(payload)).toBe(false)
  })

  test('if the daily limit is reached, the payment is refused, and the service does not ask the chain', async () => {
    const own = offer({}, await newProject(pool))
    expect(await verdictOn(await signed(), { offer: own, daily: 1 })).toBe('pending')
    const payload = await ofWallet()
    expect(await verdictOn(payload, { offer: own, daily: 1 })).toBe(
      'verify settlement_limit_reached',
    )
    expect(await isAsked(payload)).toBe(false)
  })

  test('if the chain accepts a payment but the service cannot claim (store) it, the caller gets the reason', async () => {
    const paymentIdentifier = 'order-5523-of-ada'
    await claimed(await ofWallet(), { paymentIdentifier })
    expect(await checked({ ...(await ofWallet()), paymentIdentifier }, pass)).toBe(
      'verify payment_identifier_conflict',
    )
  })
})

describe('when the service claims a payment (stores the intent to settle it), it also stores the seller’s terms, such as the resource and the price', () => {
  test('the database row of a claimed (stored) payment contains the seller’s terms, and the signature in the form that is sent to the chain', async () => {
    const payload = { ...(await ofWallet()), x402Version: 2, paymentIdentifier: 'order-1' } as const
    const terms = { endpointId: 'se_1', matchKey: 'api.example.com/report' }
    const erc6492 = { factory: FACTORY, factoryData: '0x12', signature: '0x34' } as const
    const verdict = { network: SEPOLIA, signature: '0x34' } as const
    const claim = claimOf(offer({ ...terms, resourceSource: 'payer' }), payload, {
      ...{ ...verdict, kind: 'contract', erc6492 },
      reasonWithoutCode: 'eip6492_factory_not_allowed',
    })
    expect(claim).toMatchObject({
      ...{ ...terms, projectId, resourceUrl: RESOURCE, description: 'A report' },
      ...{ network: 'base-sepolia', chainId: 84532, asset: SEPOLIA.usdcAddress, payer: WALLET },
      ...{ recipient: payTo, amountAtomic: 10_000n, signature: '0x34', deployment: erc6492 },
      ...{ x402Version: 2, resourceSource: 'payer', paymentIdentifier: 'order-1' },
    })
    const eoa = claimOf(offer(), await signed(), { ...verdict, kind: 'valid' })
    expect(eoa).toMatchObject({ payer: payer.address, deployment: null, paymentIdentifier: null })
  })
})
