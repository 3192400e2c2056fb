/** Tests how one run of the settler (the worker that settles payments) sends, ends or postpones each payment. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { toFunctionSelector } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { storeSigned, syncWallet } from '../../../../sql/till/settle/gasWallets.ts'
import type { ChainView } from '../../../../workers/till/chain/chainView.ts'
import { marketFees } from '../../../../workers/till/settle/gasWallet.ts'
import { settlePayments } from '../../../../workers/till/settle/settler.ts'
import { type HandTill, startHandTill } from '../../../support/till/handTill.ts'
import { futureWallet } from '../../../support/till/smartWallet.ts'
import { fund, pay, payer } from '../../../support/till/till.ts'
import {
  dropJobs,
  newHash,
  OTHER_CHAIN_ID,
  queuedPayments,
  settle,
  signedFor,
  WALLET,
} from '../../../support/till/tillRows.ts'
import { broadcastPayment, cancelPayment } from '../../../support/till/tokenCalls.ts'

/** Holds the gas limit of a payment whose payer is an ordinary account. */
const ACCOUNT_GAS = 160_000n

let till: HandTill
beforeAll(async () => {
  till = await startHandTill()
})
afterEach(async () => {
  till.proxy.errors.clear()
  till.proxy.fault = null
  await till.client.setAutomine(true)
  await dropJobs(till.pool)
})
afterAll(() => till[Symbol.asyncDispose]())

const run = (...ids: string[]) => settlePayments(till.chain, ids)
/** Counts the transactions of the gas wallet that are in a block or in the transaction pool of the chain node. */
const sent = () => till.client.getTransactionCount({ address: WALLET.address, blockTag: 'pending' })
const stateOf = async (id: string) => (await till.payment(id)).state
const expired = async () => {
  const { timestamp } = await till.client.getBlock()
  return till.claim(await pay({ validBefore: timestamp - 1n }))
}

describe('the settler (the worker that settles payments) sends each payment once, from a gas wallet with enough ether', () => {
  test('the settler (the worker that settles payments) sends a payment only once, and only on the chain of the payment', async () => {
    const before = await sent()
    const here = await till.claim(await pay())
    const elsewhere = await till.claim(await pay(), { chainId: OTHER_CHAIN_ID })
    await run(here, elsewhere)
    await run(here, elsewhere)
    expect(await sent()).toBe(before + 1)
    expect((await till.payment(here)).txHash).not.toBeNull()
    expect(await till.payment(elsewhere)).toMatchObject({ state: 'verified', txHash: null })
  })

  test('if the transaction of a payment was stored but not sent, the settler (settlement worker) sends the same bytes', async () => {
    const id = await till.claim(await pay())
    till.proxy.fault = { status: 503 }
    await run(id)
    till.proxy.fault = null
    till.proxy.errors.set('eth_sendRawTransaction', () => ({ code: 1, message: 'internal' }))
    await run(id)
    till.proxy.errors.clear()
    const { txHash } = await till.payment(id)
    const before = await sent()
    await run(id)
    expect(await sent()).toBe(before + 1)
    expect((await till.payment(id)).txHash).toBe(txHash)
  })

  test.each(['eth_call', 'eth_sendRawTransaction'])(
    'a payment waits for another attempt if the chain node answers %s with an error that PostgreSQL cannot store',
    async (method) => {
      const id = await till.claim(await pay())
      const message = `the limit\0 of ${'a long plan '.repeat(100_000)}`
      till.proxy.errors.set(method, () => ({ code: -32_000, message }))
      await run(id)
      till.proxy.errors.clear()
      expect(await stateOf(id)).toBe('verified')
      await run(id)
      expect((await till.payment(id)).txHash).not.toBeNull()
    },
  )

  test('the settler (settlement worker) sends a payment from a gas wallet whose balance it has not read yet', async () => {
    const before = await sent()
    const id = await till.claim(await pay())
    await settlePayments({ ...till.chain, balances: new Map() }, [id])
    expect(await sent()).toBe(before + 1)
    expect((await till.payment(id)).txHash).not.toBeNull()
  })

  test('the settler (settlement worker) uses only a gas wallet that has enough ether for the gas of the payment', async () => {
    const poor = privateKeyToAccount(generatePrivateKey())
    await syncWallet(till.pool, { ...WALLET, address: poor.address }, 0n)
    const before = await sent()
    const chain = { ...till.chain, accounts: [...till.chain.accounts, poor] }
    await till.look()
    chain.balances.set(poor.address.toLowerCase(), 0n)
    for (let n = 0; n < 2; n++) await settlePayments(chain, [await till.claim(await pay())])
    chain.balances.delete(poor.address.toLowerCase())
    expect(await sent()).toBe(before + 2)
  })
})

test('a gas wallet signs only as many payments as its ether covers, and the other payments wait', async () => {
  const ids: string[] = []
  for (let n = 0; n < 4; n++) ids.push(await till.claim(await pay()))
  const before = await sent()
  // The ether of the gas wallet is enough for two separate payments, but not for a group of four payments.
  const { maxFeeWei } = marketFees(till.chain)
  till.chain.balances.set(WALLET.address.toLowerCase(), maxFeeWei * ACCOUNT_GAS * 2n)
  await run(...ids)
  const payments = await Promise.all(ids.map((id) => till.payment(id)))
  expect(await sent()).toBe(before + 2)
  expect(payments.map(({ txHash }) => txHash !== null)).toEqual([true, true, false, false])
  expect(await queuedPayments(till.pool)).toEqual(ids.slice(2).toSorted())
  await till.look()
  await run(...ids)
  expect(await sent()).toBe(before + 3)
})

describe('the settler (the worker that settles payments) ends a payment only if the chain proves that it settled or cannot settle', () => {
  test('payments whose authorizations were cancelled do not delay other payments, and each causes at most one event search on the chain', async () => {
    const cancelled: string[] = []
    for (let n = 0; n < 4; n++) {
      const payment = await pay()
      await till.client.waitForTransactionReceipt({
        hash: await cancelPayment(till.client, payer, payment.authorization.nonce),
      })
      cancelled.push(await till.claim(payment))
    }
    await till.pool.query('update payments set valid_before = 1 where id = any ($1)', [
      cancelled.slice(2),
    ])
    const honest = [await till.claim(await pay()), await till.claim(await pay())]
    const requests: string[] = []
    for (const method of ['eth_getLogs', 'eth_sendRawTransaction']) {
      till.proxy.edits.set(method, (result) => {
        requests.push(method)
        return result
      })
    }
    await run(...cancelled, ...honest)
    till.proxy.edits.clear()
    expect(requests[0]).toBe('eth_sendRawTransaction')
    expect(requests.filter((method) => method === 'eth_getLogs').length).toBeLessThanOrEqual(4)
    const states = await Promise.all([...cancelled, ...honest].map(stateOf))
    expect(states).toEqual([...Array(4).fill('failed'), ...Array(2).fill('verified')])
    for (const id of honest) expect((await till.payment(id)).txHash).not.toBeNull()
  })

  test('a payment whose authorization has expired unused fails, even while the chain node cannot answer about another payment', async () => {
    const troubled = await expired()
    const { nonce } = await till.payment(troubled)
    const id = await expired()
    const unexpired = await till.claim(await pay())
    till.proxy.errors.set('eth_call', ([{ data }]) =>
      data.includes(nonce.slice(2)) ? { code: -32000, message: 'header not found' } : null,
    )
    await run(troubled, id, unexpired)
    expect([await stateOf(troubled), await stateOf(id)]).toEqual(['verified', 'failed'])
    expect(await till.payment(id)).toMatchObject({
      failureStage: 'verify',
      failureReason: 'invalid_exact_evm_payload_authorization_valid_before',
    })
    expect((await till.payment(unexpired)).txHash).not.toBeNull()
    expect(await queuedPayments(till.pool)).toEqual([troubled])
  })

  test('an expired payment is not sent, and fails only after the chain node has told whether its authorization was used', async () => {
    const id = await till.claim(await pay())
    const before = await sent()
    till.chain.head = { ...till.chain.head, timestamp: (await till.payment(id)).validBefore + 1n }
    const isUsed = toFunctionSelector('authorizationState(address,bytes32)')
    till.proxy.errors.set('eth_call', ([{ data }]) =>
      data.startsWith(isUsed) ? { code: -32000, message: 'header not found' } : null,
    )
    await run(id)
    await till.look()
    expect(await sent()).toBe(before)
    expect(await stateOf(id)).toBe('verified')
    expect(await queuedPayments(till.pool)).toEqual([id])
  })

  test('a payment whose transaction was sent fails 30 s after its expiry, because a reorganisation may still change the newest blocks', async () => {
    await till.client.setAutomine(false)
    const { id } = await till.send()
    const { validBefore } = await till.payment(id)
    const runAt = async (timestamp: bigint) => {
      till.chain.head = { ...till.chain.head, timestamp }
      await run(id)
      return stateOf(id)
    }
    expect(await runAt(validBefore + 30n)).toBe('verified')
    expect(await runAt(validBefore + 31n)).toBe('failed')
    await till.look()
  })

  test('a payment whose authorization a transaction has used is settled, even after the expiry of the authorization', async () => {
    const payment = await pay()
    const id = await till.claim(payment)
    await till.client.waitForTransactionReceipt({
      hash: await broadcastPayment(till.client, payment),
    })
    await run(id)
    expect(await till.payment(id)).toMatchObject({ state: 'settled', failureDetail: null })
    const late = await pay()
    const lateId = await till.claim(late)
    await till.client.waitForTransactionReceipt({ hash: await broadcastPayment(till.client, late) })
    const { head } = till.chain
    till.chain.head = { ...head, timestamp: late.authorization.validBefore + 1n }
    await till.client.mine({ blocks: 1, interval: 0 })
    till.chain.head.number = await till.client.getBlockNumber({ cacheTime: 0 })
    await run(lateId)
    expect(await stateOf(lateId)).toBe('settled')
    await till.look()
  })

  test('a payment fails after its transaction has reverted three times, and not before', async () => {
    const reverted = async (times: number) => {
      const id = await till.claim(await pay())
      await till.pool.query('update payments set revert_count = $2 where id = $1', [id, times])
      return id
    }
    const before = await sent()
    const [twice, thrice] = [await reverted(2), await reverted(3)]
    await run(twice, thrice)
    expect([await stateOf(twice), await stateOf(thrice)]).toEqual(['verified', 'failed'])
    expect(await sent()).toBe(before + 1)
    expect(await till.payment(thrice)).toMatchObject({
      failureReason: 'invalid_transaction_state',
      failureDetail: 'reverted 3 times',
    })
  })

  test('the failure stage of a failed payment is `settle` if its transaction was sent before the failure', async () => {
    const id = await till.claim(await pay())
    await till.client.setAutomine(false)
    await run(id)
    const { validBefore } = await till.payment(id)
    till.chain.head = { ...till.chain.head, timestamp: validBefore + 31n }
    await run(id)
    await till.client.setAutomine(true)
    await till.look()
    expect(await till.payment(id)).toMatchObject({ state: 'failed', failureStage: 'settle' })
    await till.client.mine({ blocks: 1 })
  })
})

describe('the settler (the worker that settles payments) postpones a payment that cannot be sent now', () => {
  const waits = async (id: string) => {
    expect(await till.payment(id)).toMatchObject({ state: 'verified', txHash: null })
    expect(await queuedPayments(till.pool)).toEqual([id])
  }

  test('the settler (settlement worker) postpones a payment while the state of the chain is unknown', async () => {
    const id = await till.claim(await pay())
    const unknown: ChainView = { ...till.chain, network: null, head: null }
    await settlePayments(unknown, [id])
    await waits(id)
  })

  test('the settler (settlement worker) postpones a payment while the chain node cannot simulate the payment', async () => {
    const id = await till.claim(await pay())
    till.proxy.errors.set('eth_call', () => ({ code: -32000, message: 'header not found' }))
    await run(id)
    await waits(id)
  })

  test('the settler (settlement worker) postpones a payment until its authorization becomes valid', async () => {
    const { timestamp } = await till.client.getBlock()
    const id = await till.claim(
      await pay({ validAfter: timestamp + 1_000n, validBefore: timestamp + 2_000n }),
    )
    await run(id)
    await waits(id)
  })

  test('the settler (settlement worker) postpones a payment while no gas wallet can pay the gas', async () => {
    const id = await till.claim(await pay())
    till.chain.balances.set(WALLET.address.toLowerCase(), 1n)
    await run(id)
    await waits(id)
    await till.look()
    await run(id)
    expect((await till.payment(id)).txHash).not.toBeNull()
  })

  test('the settler (settlement worker) postpones a payment while another payment deploys the same payer’s wallet', async () => {
    const wallet = futureWallet(payer.address)
    await fund(till.client, wallet.address, 1_000_000n)
    const claim = async () => {
      const { authorization, signature } = await pay({ from: wallet.address })
      const { deployment } = wallet
      return till.claim({ authorization, signature, header: '' }, { deployment })
    }
    const [first, second] = [await claim(), await claim()]
    await till.client.setAutomine(false)
    const before = await sent()
    await run(first, second)
    await run(first, second)
    expect(await sent()).toBe(before + 1)
    const queued = await queuedPayments(till.pool)
    expect(queued).toHaveLength(1)
    await till.client.setAutomine(true)
    await till.client.mine({ blocks: 1 })
    await till.look()
    const deploying = queued[0] === first ? second : first
    await settle(till.pool, deploying, (await till.payment(deploying)).txHash!)
    await run(...queued)
    const { txHash } = await till.payment(queued[0]!)
    const receipt = await till.client.waitForTransactionReceipt({ hash: txHash! })
    expect(receipt.status).toBe('success')
  })
})

test('the settler (settlement worker) does not send a failed payment, even if a transaction of the payment is stored', async () => {
  const payment = await pay()
  const id = await till.claim(payment)
  await storeSigned(till.pool, WALLET, [[id]], new Map(), async (_, nonce) => ({
    ...signedFor(id, nonce),
    hash: newHash(),
  }))
  await till.pool.query(
    `update payments set state = 'failed', failure_reason = 'insufficient_funds' where id = $1`,
    [id],
  )
  await run(id)
  const { rows } = await till.pool.query(
    'select send_count from chain_transactions where payment_id = $1',
    [id],
  )
  expect(rows).toEqual([{ send_count: 0 }])
})
