/**
 * Compares the account book of a seller with the chain: transactions that settle several payments, a reorganisation,
 * the seller's own addresses, and fees.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Hex, parseAbi } from 'viem'
import type { Agent } from '../../../support/service.ts'
import { type GroupScene, startGroupScene } from '../../../support/till/groupScene.ts'
import { newPayer, pay, payTo, redeemToEnd, SEPOLIA } from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'

const TRANSFER = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

let scene: GroupScene
beforeAll(async () => {
  scene = await startGroupScene()
})
afterAll(() => scene[Symbol.asyncDispose]())

type Entry = Record<string, any>

const download = ({ key }: Pick<Agent, 'key'>, query = '') =>
  fetch(`${scene.till.service.url}/v0/payments/export?${query}`, {
    headers: { authorization: `Bearer ${key}` },
  })

/** Returns the entries of the account book in a response in JSON Lines. */
async function entries(query = ''): Promise<Entry[]> {
  const response = await download(scene.seller, `format=jsonl${query}`)
  expect(response.status).toBe(200)
  return (await response.text())
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/** Reads from the chain each transfer to the seller, with its transaction, log index and amount. */
const transfers = async () => {
  const logs = await scene.till.client.getContractEvents({
    address: SEPOLIA.usdcAddress,
    abi: TRANSFER,
    eventName: 'Transfer',
    args: { to: payTo },
    fromBlock: 0n,
  })
  return logs
    .map(({ transactionHash, logIndex, args }) => `${transactionHash} ${logIndex} ${args.value}`)
    .toSorted()
}
const booked = (found: Entry[]) =>
  found
    .map(({ txHash, logIndex, amountUsdcRaw }) => `${txHash} ${logIndex} ${amountUsdcRaw}`)
    .toSorted()

test('a seller’s account book matches the chain after a transaction with several payments, a single payment and a reorganisation', async () => {
  const { payments } = await scene.groupInPool([{}, {}, {}])
  await scene.mineOn()
  for (const payment of payments) await scene.settledBy(payment)
  const { header } = await pay()
  const single = await redeemToEnd(scene.seller, header)
  expect(single.body.ok).toBe(true)
  const until = encodeURIComponent(new Date().toISOString())
  expect(booked(await entries(`&to=${until}`))).toEqual(await transfers())
  // A reorganisation removes the newest block, and the payment in this block settles again, so the account book must
  // contain the payment only once.
  await scene.till.client.setAutomine(false)
  await scene.reorganise()
  const taken = () => entries().then((found) => found.length === payments.length)
  await waitFor('the payment to leave the books', taken)
  expect(booked(await entries())).toEqual(await transfers())
  await scene.mineOn()
  await waitFor('the payment to come back', async () => !(await taken()))
  const found = await entries()
  expect(booked(found)).toEqual(await transfers())
  expect(found.map(({ paymentId }) => paymentId).toSorted()).toEqual(
    [...payments.map(({ id }) => id), single.body.paymentId].toSorted(),
  )
})

test('if one transaction settles several payments, the payments’ parts of the fee add up to the exact fee in wei', async () => {
  const sums = Map.groupBy(await entries(), ({ txHash }) => txHash as Hex)
  expect(sums.size).toBeGreaterThan(1)
  for (const [hash, members] of sums) {
    const { gasUsed, effectiveGasPrice } = await scene.till.client.getTransactionReceipt({ hash })
    const shares = members.map(({ feeWei }) => BigInt(feeWei))
    expect(shares.reduce((sum, share) => sum + share, 0n)).toBe(gasUsed * effectiveGasPrice)
    expect(shares.every((share) => share > 0n)).toBe(true)
  }
})

test('the account book lists payments from the seller’s own addresses separately from the income', async () => {
  const account = await newPayer(scene.till.client)
  const path = `/v0/platform/projects/${scene.seller.project.id}`
  const { platform } = scene.till.service
  const set = await platform.patch(path, { ownAddresses: [account.address] })
  expect(set.body.ownAddresses).toEqual([account.address.toLowerCase()])
  const before = (await scene.seller.get('/v0/payments/activity')).body
  const { header } = await pay({}, { account })
  expect((await redeemToEnd(scene.seller, header)).body.ok).toBe(true)
  const { body } = await scene.seller.get('/v0/payments/activity')
  expect(body.own).toEqual({ count: 1, amountUsdc: '0.01', amountUsdcRaw: '10000' })
  expect([body.count, body.amountUsdcRaw]).toEqual([before.count, before.amountUsdcRaw])
  expect(body.byPayer.map(({ payerAddress }: Entry) => payerAddress)).not.toContain(
    account.address.toLowerCase(),
  )
  expect(body.byPayer.reduce((sum: number, { count }: Entry) => sum + count, 0)).toBe(body.count)
  const own = async () => (await entries()).filter((entry) => entry.own).length
  await waitFor('the payment in the books', async () => (await own()) > 0)
  expect(await own()).toBe(1)
  const refused = await platform.patch(path, { ownAddresses: ['0x12'] })
  expect([refused.status, refused.body.message]).toEqual([
    400,
    expect.stringContaining('ownAddresses'),
  ])
})

test('a reader of the account book can continue after the last entry with its cursor, and can choose a period', async () => {
  const all = await entries()
  expect(all.length).toBeGreaterThan(4)
  const after = encodeURIComponent(all[1]!.cursor)
  expect(await entries(`&pageToken=${after}`)).toEqual(all.slice(2))
  expect(await entries(`&pageToken=${encodeURIComponent(all.at(-1)!.cursor)}`)).toEqual([])
  const from = encodeURIComponent(all[2]!.settledAt)
  expect(await entries(`&from=${from}`)).toEqual(
    all.filter(({ settledAt }) => settledAt >= all[2]!.settledAt),
  )
  expect(await entries(`&to=${from}`)).toEqual(
    all.filter(({ settledAt }) => settledAt < all[2]!.settledAt),
  )
})

test('the CSV account book has the same entries as JSON Lines, and contains no text that a spreadsheet runs as a formula', async () => {
  const all = await entries()
  const { pool } = scene.till.service.database
  await pool.query(`update payments set resource_url = '=HYPERLINK("x","a,b")' where id = $1`, [
    all[0]!.paymentId,
  ])
  const response = await download(scene.seller)
  expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  const [names, first, ...others] = (await response.text()).trimEnd().split('\r\n')
  expect(names).toBe(Object.keys(all[0]!).join(','))
  expect(first).toContain(`"'=HYPERLINK(""x"",""a,b"")"`)
  expect(others).toHaveLength(all.length - 1)
  expect(others[0]).toBe(
    Object.values(all[1]!)
      .map((value) => value ?? '')
      .join(','),
  )
})

test('an invalid query of the account book is refused with the name of the field, and another project sees no entries', async () => {
  const cases: [string, string][] = [
    ['from=yesterday', 'from must be an ISO 8601 time with its zone, or a date'],
    ['to=2026-02-30', 'to must be an ISO 8601 time with its zone, or a date'],
    ['from=2026-02-02&to=2026-02-01', 'to must not be earlier than from'],
    ['format=xml', 'format must be one of "csv", "jsonl"'],
    ['pageToken=x', 'pageToken must be the cursor of an entry, unchanged'],
  ]
  for (const [query, message] of cases) {
    const { status, body } = await scene.seller.get(`/v0/payments/export?${query}`)
    expect([query, status, body.message]).toEqual([query, 400, message])
  }
  const other = await scene.till.service.newAgent()
  expect(await (await download(other, 'format=jsonl')).text()).toBe('')
})
