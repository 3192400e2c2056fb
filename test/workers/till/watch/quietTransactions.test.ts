/**
 * Tests that a transaction is broadcast again, and replaced by a transaction with a higher fee, if its state has not
 * changed for some time.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Hex, parseGwei, parseTransaction } from 'viem'
import { findOpenTransactions } from '../../../../sql/till/watch/openTransactions.ts'
import { readWallets } from '../../../../workers/till/chain/chain.ts'
import { readReceipts } from '../../../../workers/till/chain/transactionReceipts.ts'
import { reprice } from '../../../../workers/till/settle/gasWallet.ts'
import { settlePayments } from '../../../../workers/till/settle/settler.ts'
import { MULTICALL3_ADDRESS } from '../../../../workers/till/wallets/walletDeployment.ts'
import { resendDropped } from '../../../../workers/till/watch/quietTransactions.ts'
import {
  newReconciler,
  type Reconciler,
  reconcile,
} from '../../../../workers/till/watch/reconcile.ts'
import { type HandTill, startHandTill } from '../../../support/till/handTill.ts'
import { futureWallet } from '../../../support/till/smartWallet.ts'
import { fund, pay, payer, SEPOLIA } from '../../../support/till/till.ts'
import { row } from '../../../support/till/tillRows.ts'
import { stranger } from '../../../support/till/tokenCalls.ts'

let till: HandTill
let memory: Reconciler
beforeAll(async () => {
  till = await startHandTill()
})
beforeEach(async () => {
  await till.reset()
  memory = newReconciler()
})
afterAll(() => till[Symbol.asyncDispose]())

const look = (times?: number) => till.reconcile(memory, times)
const transactionOf = (hash: Hex) => row(till.pool, 'chain_transactions', hash)
const newestOf = async (id: string) => (await till.payment(id)).txHash

describe('a quiet transaction (its state has not changed for some time) is sent again or replaced', () => {
  const sendsOf = async (hash: Hex) => (await transactionOf(hash)).send_count
  beforeEach(() => till.client.setAutomine(false))

  test('a quiet transaction (not sent recently) is broadcast again while its nonce is unused', async () => {
    const { txHash } = await till.send()
    await look()
    expect(await sendsOf(txHash)).toBe(2)
    await till.client.mine({ blocks: 1 })
    await look()
    expect(await sendsOf(txHash)).toBe(2)
  })

  test('an empty transfer replaces a transaction whose payment has failed, so that the transaction takes no money', async () => {
    const { id, txHash } = await till.send()
    await till.pool.query(
      `update payments set state = 'failed', failure_reason = 'insufficient_funds' where id = $1`,
      [id],
    )
    await look()
    expect(await sendsOf(txHash)).toBe(1)
    await till.client.mine({ blocks: 1 })
    expect(await till.client.getTransactionReceipt({ hash: txHash }).catch(() => null)).toBeNull()
    const { rows } = await till.pool.query(
      'select hash from chain_transactions where nonce = $1 and payment_id is null',
      [(await transactionOf(txHash)).nonce],
    )
    const receipt = await till.client.getTransactionReceipt({ hash: rows[0].hash })
    expect([receipt.status, receipt.logs]).toEqual(['success', []])
  })

  test('the fee of a quiet (long unchanged) transaction rises by a quarter if it was sent twice and is missing from three blocks', async () => {
    const { id, txHash } = await till.send()
    const passBlocks = (count: number) => {
      till.chain.head = { ...till.chain.head, number: till.chain.head.number + BigInt(count) }
      return reconcile(till.chain, memory, till.chain.head)
    }
    await passBlocks(3)
    expect(await newestOf(id)).toBe(txHash)
    await till.pool.query('update chain_transactions set sent_head = sent_head + 1')
    await passBlocks(0)
    expect(await newestOf(id)).toBe(txHash)
    await passBlocks(1)
    const raised = await newestOf(id)
    expect(raised).not.toBe(txHash)
    const [before, after] = [await transactionOf(txHash), await transactionOf(raised!)]
    expect(BigInt(after.max_fee_wei) * 4n).toBeGreaterThanOrEqual(BigInt(before.max_fee_wei) * 5n)
    expect(BigInt(after.tip_wei) * 4n).toBeGreaterThanOrEqual(BigInt(before.tip_wei) * 5n)
    await till.pool.query(`update chain_transactions set sent_at = sent_at - interval '1 minute'`)
    await passBlocks(0)
    expect([await sendsOf(txHash), await sendsOf(raised!)]).toEqual([4, 2])
  })

  test('the transaction fee does not rise while the chain node reports that the gas wallet has too little ether', async () => {
    const [first, second] = [await till.send(), await till.send()]
    const message = 'insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1'
    const { raw } = await transactionOf(first!.txHash)
    till.proxy.errors.set('eth_sendRawTransaction', ([sent]) =>
      sent === raw ? { code: -32000, message } : null,
    )
    for (let n = 0; n < 5; n++) {
      till.chain.head = { ...till.chain.head, number: till.chain.head.number + 4n }
      await reconcile(till.chain, memory, till.chain.head)
    }
    // The second transaction waits for the nonce of the first one, and not for a higher fee.
    expect([await newestOf(first!.id), await newestOf(second!.id)]).toEqual([
      first!.txHash,
      second!.txHash,
    ])
    // The payment of the first transaction fails. An empty transfer therefore replaces this transaction, because an
    // empty transfer costs less.
    await till.pool.query(
      `update payments set state = 'failed', failure_reason = 'insufficient_funds' where id = $1`,
      [first!.id],
    )
    await reconcile(till.chain, memory, till.chain.head)
    const { rows } = await till.pool.query(
      'select max_fee_wei from chain_transactions where nonce = $1 and payment_id is null',
      [(await transactionOf(first!.txHash)).nonce],
    )
    expect(rows).toHaveLength(1)
  })

  test('the replacement of a quiet (long unchanged) transaction offers a higher market fee, but never more than 100 gwei', async () => {
    const refuse = () => ({ code: -32000, message: 'transaction underpriced' })
    const { id } = await till.send()
    till.proxy.errors.set('eth_sendRawTransaction', refuse)
    till.chain.head = { ...till.chain.head, baseFeePerGas: parseGwei('30') }
    till.chain.tipWei = parseGwei('7')
    const lookOn = () => reconcile(till.chain, memory, till.chain.head)
    await lookOn()
    const market = await transactionOf((await newestOf(id))!)
    expect([BigInt(market.max_fee_wei), BigInt(market.tip_wei)]).toEqual([
      parseGwei('67'),
      parseGwei('7'),
    ])
    for (let n = 0; n < 5; n++) await lookOn()
    const { rows } = await till.pool.query(
      'select max_fee_wei from chain_transactions order by max_fee_wei desc',
    )
    expect(BigInt(rows[0].max_fee_wei)).toBe(parseGwei('100'))
    expect(rows).toHaveLength(4)
  })

  test('if the payer’s wallet was deployed after a transaction was sent, the replacement of this transaction does not deploy the wallet again', async () => {
    await till.client.setAutomine(true)
    const wallet = futureWallet(payer.address)
    await fund(till.client, wallet.address, 10_000n)
    await till.client.setAutomine(false)
    const { deployment } = wallet
    const id = await till.claim(await pay({ from: wallet.address }), { deployment })
    await settlePayments(till.chain, [id])
    const targetOf = async () => {
      const { raw } = await transactionOf((await newestOf(id))!)
      return parseTransaction(raw).to
    }
    expect(await targetOf()).toBe(MULTICALL3_ADDRESS.toLowerCase() as Hex)
    await till.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
    await till.client.sendTransaction({
      account: stranger,
      chain: null,
      to: deployment.factory,
      data: deployment.factoryData,
      gas: 1_000_000n,
      maxFeePerGas: parseGwei('60'),
    })
    await till.client.mine({ blocks: 1 })
    await till.look()
    const refused = { code: -32000, message: 'transaction underpriced' }
    till.proxy.errors.set('eth_sendRawTransaction', () => refused)
    await look()
    expect(await targetOf()).toBe(SEPOLIA.usdcAddress.toLowerCase() as Hex)
  })

  test('if two processes raise the fee of a quiet (long unchanged) transaction at once, only one process sends a replacement', async () => {
    const { id } = await till.send()
    const [stuck] = await findOpenTransactions(till.pool, [id])
    const raise = async () =>
      reprice(till.chain, till.chain.accounts[0]!, {
        stuck: stuck!,
        payments: [await till.payment(id)],
      })
    let sends = 0
    till.proxy.edits.set('eth_sendRawTransaction', (hash) => {
      sends++
      return hash
    })
    expect([await raise(), await raise()]).toEqual([true, false])
    expect(sends).toBe(1)
  })

  test('a quiet (long unchanged) transaction is not replaced if the chain node reports that its nonce is too low', async () => {
    const { id, txHash } = await till.send()
    const message = 'nonce too low: next nonce 5, tx nonce 4, fee'
    till.proxy.errors.set('eth_sendRawTransaction', () => ({ code: -32000, message }))
    await look(2)
    expect(await newestOf(id)).toBe(txHash)
  })
})

describe('a transaction that the chain node’s pool has dropped is broadcast again', () => {
  const ofWallet = () => ({ chainId: SEPOLIA.chainId, address: till.chain.accounts[0]!.address })
  const lookAtPool = async () => {
    const [wallet] = await readWallets(till.chain.rpc, [ofWallet().address])
    await resendDropped(till.chain, ofWallet(), wallet!.pooled)
  }
  const passASecond = () =>
    till.pool.query(`update chain_transactions set sent_at = sent_at - interval '1 second'`)
  const sendThree = async () => {
    const sent = [await till.send(), await till.send()]
    await till.client.dropTransaction({ hash: sent[1]!.txHash })
    sent.push(await till.send())
    return sent.map(({ txHash }) => txHash)
  }
  const minedOf = async (hashes: readonly Hex[]) => {
    await till.client.mine({ blocks: 1 })
    const receipts = await readReceipts(till.chain.rpc, hashes)
    return receipts.map((receipt) => receipt !== null)
  }
  beforeEach(() => till.client.setAutomine(false))

  test('if the chain node has dropped a transaction, it is broadcast again at once, because transactions with later nonces wait', async () => {
    const hashes = await sendThree()
    await passASecond()
    await lookAtPool()
    expect(await minedOf(hashes)).toEqual([true, true, true])
  })

  test('a dropped transaction is broadcast again only after the chain node has had time to count the transaction in its pool', async () => {
    const hashes = await sendThree()
    // The service waits a moment after the sending time, because the chain node must first count the transaction. On a
    // busy machine, this moment could end before the test reads the transaction pool. Therefore the test moves the
    // sending time into the future.
    await till.pool.query(`update chain_transactions set sent_at = sent_at + interval '1 minute'`)
    await lookAtPool()
    expect(await minedOf(hashes)).toEqual([true, false, false])
  })

  test('a dropped transaction is broadcast again once, and later only when it counts as quiet (not sent recently)', async () => {
    const { txHash } = await till.send()
    for (let drops = 0; drops < 2; drops++) {
      await till.client.dropTransaction({ hash: txHash })
      await passASecond()
      await lookAtPool()
    }
    expect(await minedOf([txHash])).toEqual([false])
    await look()
    expect(await minedOf([txHash])).toEqual([true])
  })
})
