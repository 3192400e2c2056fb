/** Compares the accounting entries of a project that has a purse (wallet) with the chain. */
import { expect, test } from 'bun:test'
import { parseAbiItem } from 'viem'
import { changeProject } from '../../support/changeProject.ts'
import { startProcess } from '../../support/process/process.ts'
import { fundPurse, ofAgent, startPurseTill, startSeller } from '../../support/purse/purseScene.ts'
import { pay, redeemToEnd, SEPOLIA } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

type Entry = Record<string, string | number | boolean | null>

test('after a chain reorganisation, the accounting entries of sales, refunds, purchases and a sweep (withdrawal) still match the chain', async () => {
  await using till = await startPurseTill()
  const { platform, url, database, config } = till.service
  const seller = await till.newSeller()
  const address = await fundPurse(till, seller.project.id, 1_000_000n)
  await changeProject(database.pool, seller.project.id, { payTo: address })
  const granted = await platform.patch(`/v0/platform/projects/${seller.project.id}`, {
    addScopes: ['purse:read', 'purse:pay'],
  })
  expect(granted.status).toBe(200)
  const buyer = ofAgent(till, seller)
  await using shop = startSeller(till)
  await buyer.giveMandate({ hosts: [shop.host] })

  const { header } = await pay({ to: address })
  const sale = await redeemToEnd(seller, header)
  const bought = await buyer.pay(shop.url)
  await buyer.settled(bought.body.purchaseId, 'spent')

  const read = async (query = ''): Promise<Entry[]> => {
    const answer = await fetch(`${url}/v0/payments/export?format=jsonl${query}`, {
      headers: { authorization: `Bearer ${seller.key}` },
    })
    const text = await answer.text()
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }
  const booked = (found: Entry[]) =>
    found.map((one) => `${one.txHash} ${one.logIndex} ${one.amountUsdcRaw}`).toSorted()
  /** Returns each transfer to or from the purse (wallet), except the transfer that funded the purse. */
  const onChain = async () => {
    const event = parseAbiItem(
      'event Transfer(address indexed from, address indexed to, uint256 value)',
    )
    const shared = { address: SEPOLIA.usdcAddress, event, fromBlock: 0n }
    const [into, out] = await Promise.all([
      till.client.getLogs({ ...shared, args: { to: address } }),
      till.client.getLogs({ ...shared, args: { from: address } }),
    ])
    return [...into.slice(1), ...out]
      .map(({ transactionHash, logIndex, args }) => `${transactionHash} ${logIndex} ${args.value}`)
      .toSorted()
  }
  const until = encodeURIComponent(new Date().toISOString())
  expect(booked(await read(`&to=${until}`))).toEqual(await onChain())

  // The reorganisation removes the newest block with its purchase, so the account book must lose this entry.
  await till.client.request({ method: 'anvil_reorg', params: [1, []] } as never)
  await waitFor('the purchase to leave the books', async () => (await read()).length === 1)
  expect(booked(await read())).toEqual(await onChain())
  const nonce = (await buyer.purchase(bought.body.purchaseId)).payment!.nonce
  await shop.settle(shop.received.find(({ payload }) => payload.authorization.nonce === nonce)!)
  await buyer.settled(bought.body.purchaseId, 'spent')

  await till.client.mine({ blocks: 66, interval: 1 })
  await waitFor('a final sale', async () => {
    const { body } = await seller.get(`/v0/payments/${sale.body.paymentId}`)
    return (body as { finalizedAt: string | null }).finalizedAt
  })
  for (const amount of ['0.001', '0.002']) {
    await platform.post(
      `/v0/payments/${sale.body.paymentId}/refund`,
      { amount },
      { 'idempotency-key': amount },
    )
  }
  const kinds = async () => (await read()).map(({ kind }) => kind)
  await waitFor(
    'the refunds in the books',
    async () => (await kinds()).filter((kind) => kind === 'refund').length === 2,
  )
  await using sweep = startProcess(
    'sql/purse/sweepMain.ts',
    { DATABASE_URL: database.url, DATA_DIR: config.dataDir },
    [seller.project.id, `0x${'3c'.repeat(20)}`],
  )
  expect(await sweep.exited).toBe(0)
  await waitFor('all entries in the books', async () => (await kinds()).length === 5)

  const all = await read()
  expect(all.map(({ kind }) => kind)).toEqual(['payment', 'purchase', 'refund', 'refund', 'sweep'])
  expect(booked(all)).toEqual(await onChain())
  const cursor = encodeURIComponent(String(all[1]!.cursor))
  expect(await read(`&pageToken=${cursor}`)).toEqual(all.slice(2))
  expect(all.filter(({ kind }) => kind === 'refund').map(({ paymentId }) => paymentId)).toEqual([
    sale.body.paymentId,
    sale.body.paymentId,
  ])
  const { body: activity } = await seller.get('/v0/payments/activity')
  expect(activity).toMatchObject({
    amountUsdc: '0.01',
    refunded: { count: 2, amountUsdc: '0.003' },
  })

  // An API key without purse:read sees only the sales and refunds of the project.
  const { body: narrowed } = await platform.patch(`/v0/platform/projects/${seller.project.id}`, {
    removeScopes: ['purse:read', 'purse:pay'],
  })
  expect((narrowed as { scopes: string[] }).scopes).not.toContain('purse:read')
  expect(await kinds()).toEqual(['payment', 'refund', 'refund'])
})

test('the accounting entries of purchases are exported as CSV, in pages', async () => {
  await using till = await startPurseTill()
  const agent = await till.service.newAgent()
  await fundPurse(till, agent.project.id)
  const buyer = ofAgent(till, agent)
  await using shop = startSeller(till)
  await buyer.giveMandate({ hosts: [shop.host] })
  await buyer.pay(shop.url, { why: 'First, "quoted"' })
  await buyer.pay(shop.url, { why: '=1+1' })
  const read = (query: string) =>
    fetch(`${till.service.url}/v0/purse/payments?format=csv&limit=1${query}`, {
      headers: { authorization: `Bearer ${agent.key}` },
    })
  const first = await read('')
  expect(first.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  const [names, newest] = (await first.text()).split('\r\n')
  expect(names).toStartWith('createdAt,purchaseId,state,')
  expect(newest).toEndWith(",'=1+1")
  const token = encodeURIComponent(first.headers.get('purser-next-page-token')!)
  const second = await read(`&pageToken=${token}`)
  expect(await second.text()).toContain('"First, ""quoted"""')
  expect(second.headers.get('purser-next-page-token')).toBeNull()
})
