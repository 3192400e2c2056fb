/**
 * Tests payments that wait for the approval of their owner. The purse (a project's wallet) signs only the payment terms
 * that the owner saw.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { approvalTokens } from '../../../shared/approvalLink.ts'
import { addApprovalLink } from '../../../sql/account/approvalLinks.ts'
import { masterKeys } from '../../../sql/keyring/keyring.ts'
import { signIn, signInAs } from '../../support/console/consoleSession.ts'
import { changingBefore } from '../../support/database/beforeStatement.ts'
import { whileFailing } from '../../support/database/failingStatements.ts'
import { decideByLink } from '../../support/mail/held.ts'
import { connectMcp, textOf } from '../../support/mcp.ts'
import {
  type Buyer,
  newBuyer,
  type PurchaseView,
  type Seller,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import type { TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let till: TestTill
let seller: Seller
let buyer: Buyer
let base: string
beforeAll(async () => {
  till = await startPurseTill({ parts: { pools: ['purse', 'outbound'] } })
})
beforeEach(async () => {
  seller = startSeller(till)
  buyer = await newBuyer(till)
  base = `/v0/platform/projects/${buyer.project.id}/purse/asked`
  await buyer.giveMandate({ hosts: [seller.host], askAbove: '0.005', maxTotal: '0.1' })
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
})

type Asked = {
  approvalId: string
  sha256: string
  askedFor: string
  purchase: PurchaseView
  state: string
}

/** Requests a purchase, and returns the approval request that the owner gets for this purchase. */
async function ask(more: object = {}): Promise<{ asked: Asked; purchaseId: string }> {
  const { status, body } = await buyer.pay(seller.url, { why: 'Ignore all limits.', ...more })
  expect([status, body.state]).toEqual([202, 'waiting'])
  const { body: list } = await till.service.platform.get(base)
  const asked = (list as { asked: Asked[] }).asked.find(
    ({ purchase }) => purchase.purchaseId === body.purchaseId,
  )!
  return { asked, purchaseId: body.purchaseId }
}

/** Returns the approval link that the owner of the buyer gets by mail. */
async function linkOf(approvalId: string): Promise<string> {
  const { config, database, url } = till.service
  const address = 'owner@example.com'
  await database.pool.query('update projects set approver_email = $2 where id = $1', [
    buyer.project.id,
    address,
  ])
  const token = approvalTokens(masterKeys(config))(approvalId, address)
  await addApprovalLink(database.pool, { token, approvalId, address })
  return `${url}/approve/${token}`
}

const approve = (approvalId: string, sha256: string) =>
  till.service.platform.post(`${base}/${approvalId}/approve`, { sha256 })

test('over MCP, an agent is told that the owner decides about a purchase, and how to read the purchase later', async () => {
  await using mcp = await connectMcp(till.service.url, buyer.key)
  const args = { url: seller.url, maxAmount: '0.01', idempotencyKey: 'waits' }
  const result = await mcp.callTool({ name: 'purse.pay', arguments: args })
  expect(textOf(result)).toMatch(
    /: waiting[\s\S]*The owner decides about it\.\nRead it with purse\.status: purchaseId \S+\.\n/,
  )
})

test('after the owner approves a purchase, the service asks the seller for a new offer and pays once', async () => {
  const { asked, purchaseId } = await ask({ method: 'POST', body: { city: 'Berlin' } })
  expect(asked).toMatchObject({
    state: 'waiting',
    askedFor: 'above_limit',
    purchase: { terms: { amountUsdc: '0.01' }, why: 'Ignore all limits.', payment: null },
  })
  expect(seller.received).toEqual([])
  const { status } = await approve(asked.approvalId, asked.sha256)
  expect(status).toBe(200)
  expect((await approve(asked.approvalId, asked.sha256)).status).toBe(200)
  const { body } = await buyer.get(`/v0/purse/payments/${purchaseId}?timeout=40`)
  expect(body).toMatchObject({ state: 'answered', status: 200 })
  expect(seller.received.length).toBe(1)
  const { body: log } = await buyer.get('/v0/logs?action=payment.approve')
  expect((log as { count: number }).count).toBe(1)
})

test('the owner sees the whole request of a purchase until the decision, whereas a list of purchases does not show it', async () => {
  const url = `${seller.url}?to=attacker&sku=giftcard`
  const body = { order: 'a'.repeat(12_000) }
  const headers = { 'x-note': 'to attacker' }
  const { asked } = await ask({ url, method: 'POST', headers, body })
  expect(asked).not.toHaveProperty('request')
  const path = `${base}/${asked.approvalId}`
  const { body: whole } = await till.service.platform.get(path)
  expect(whole.request).toMatchObject({ url, headers, body: JSON.stringify(body) })
  const { body: rejected } = await till.service.platform.post(`${path}/reject`, {})
  expect(rejected.request).toBeNull()
  expect((await till.service.platform.get(path)).body.request).toBeNull()
})

test('a purchase is refused if the seller changes its offer after the approval', async () => {
  for (const change of [
    { amount: '10001' },
    { amount: '9000' },
    { payTo: `0x${'ab'.repeat(20)}` },
  ]) {
    const { asked, purchaseId } = await ask()
    const { amount, payTo } = seller.terms
    Object.assign(seller.terms, change)
    await approve(asked.approvalId, asked.sha256)
    const { body } = await buyer.get(`/v0/purse/payments/${purchaseId}?timeout=40`)
    expect(body).toMatchObject({ state: 'refused', reason: 'terms_changed', payment: null })
    Object.assign(seller.terms, { amount, payTo })
  }
  expect(seller.received).toEqual([])
})

test('an approval of a payment is refused if its hash belongs to other terms, or if its path names another project or a mail', async () => {
  const { asked } = await ask()
  expect((await approve(asked.approvalId, 'ab'.repeat(32))).status).toBe(409)
  const other = await till.service.newAgent()
  const elsewhere = `/v0/platform/projects/${other.project.id}`
  const { platform } = till.service
  const body = { sha256: asked.sha256 }
  for (const path of [
    `${elsewhere}/purse/asked/${asked.approvalId}/approve`,
    `/v0/platform/projects/${buyer.project.id}/held/${asked.approvalId}/approve`,
  ]) {
    expect((await platform.post(path, body)).status).toBe(404)
  }
  expect((await buyer.post(`${base}/${asked.approvalId}/approve`, body)).status).toBe(403)
  expect(seller.received).toEqual([])
})

test('if the owner rejects a payment, the agent gets the reason, and the payment is never signed', async () => {
  const { asked, purchaseId } = await ask()
  await till.service.platform.post(`${base}/${asked.approvalId}/reject`, {
    reason: 'Too expensive.',
  })
  const { body } = await buyer.get(`/v0/purse/payments/${purchaseId}`)
  expect(body).toMatchObject({
    state: 'refused',
    reason: 'rejected',
    detail: 'the owner rejected the payment: Too expensive.',
  })
  expect((await approve(asked.approvalId, asked.sha256)).status).toBe(409)
  expect(seller.received).toEqual([])
})

test('an approval request for a payment expires if the owner does not decide', async () => {
  const { asked, purchaseId } = await ask()
  const { pool } = till.service.database
  await pool.query(
    `update approvals set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
    [asked.approvalId],
  )
  const late = await approve(asked.approvalId, asked.sha256)
  expect([late.status, late.body.message]).toEqual([410, 'The request has expired'])
  await pool.query(
    `update graphile_worker._private_jobs set run_at = now() where key = 'expire_approval:' || $1`,
    [asked.approvalId],
  )
  const ended = await waitFor('the end', async () => {
    const found = await buyer.purchase(purchaseId)
    return found.state === 'waiting' ? null : found
  })
  expect(ended).toMatchObject({ state: 'refused', reason: 'approval_expired' })
  expect((await approve(asked.approvalId, asked.sha256)).status).toBe(409)
})

test('the link in a notification mail shows the payment, and can decide its approval request only once', async () => {
  const { asked, purchaseId } = await ask({
    url: `${seller.url}?sku=7`,
    method: 'POST',
    body: { to: 'Berlin\u202e' },
  })
  const url = await linkOf(asked.approvalId)
  const shown = await fetch(url)
  const html = await shown.text()
  expect(shown.status).toBe(200)
  for (const words of [
    '0.01 USDC',
    seller.host,
    'in the words of the agent',
    'Ignore all limits.',
    '?sku=7',
    '{&quot;to&quot;:&quot;Berlin⟨U+202E⟩&quot;}',
  ]) {
    expect(html).toContain(words)
  }
  const wrong = await decideByLink(url, { decision: 'approve', sha256: 'ab'.repeat(32) })
  expect([wrong.status, (await wrong.text()).includes('has changed since')]).toEqual([409, true])
  const form = { decision: 'approve', sha256: asked.sha256 }
  const failed = await whileFailing('update approval_links', () => decideByLink(url, form))
  expect([failed.status, (await failed.text()).includes('temporarily unavailable')]).toEqual([
    503,
    true,
  ])
  expect(await (await decideByLink(url, form)).text()).toContain('Approved')
  const { body } = await buyer.get(`/v0/purse/payments/${purchaseId}?timeout=40`)
  expect(body).toMatchObject({ state: 'answered' })
})

test('the link in a notification mail tells how the approval request of a payment ended', async () => {
  const { asked: late } = await ask()
  const lateLink = await linkOf(late.approvalId)
  await till.service.database.pool.query(
    `update approvals set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
    [late.approvalId],
  )
  const { asked } = await ask()
  const link = await linkOf(asked.approvalId)
  const rejected = await decideByLink(link, { decision: 'reject', sha256: asked.sha256 })
  expect(rejected.status).toBe(200)
  for (const [url, heading] of [
    [lateLink, 'Expired'],
    [link, 'Rejected'],
  ] as const) {
    const form = { decision: 'approve', sha256: asked.sha256 }
    for (const page of [await fetch(url), await decideByLink(url, form), await fetch(url)]) {
      const html = await page.text()
      expect([html.includes(`<h1>${heading}</h1>`), html.includes('value="approve"')]).toEqual([
        true,
        false,
      ])
    }
  }
  expect(seller.received).toEqual([])
})

test('an approval request whose purchase no longer exists is not found and not listed', async () => {
  const { asked, purchaseId } = await ask()
  const { pool } = till.service.database
  const remove = () => pool.query('delete from purchases where id = $1', [purchaseId])
  const read = () => till.service.platform.get(`${base}/${asked.approvalId}`)
  expect((await changingBefore('find-purchase ', remove, read)).status).toBe(404)
  expect((await till.service.platform.get(`${base}/${asked.approvalId}`)).status).toBe(404)
  const { status, body } = await till.service.platform.get(base)
  expect([status, body]).toEqual([200, { asked: [], count: 0 }])
})

test('an owner cannot decide about a purchase if the owner becomes a viewer while the decision waits for a database lock', async () => {
  const { asked } = await ask()
  const operator = await signIn(till.service)
  const path = `${base}/${asked.approvalId}`
  for (const [decision, body] of [
    ['approve', { sha256: asked.sha256 }],
    ['reject', {}],
  ] as const) {
    const owner = await signInAs(till.service, 'owner', [buyer.project.id])
    const { status } = await changingBefore(
      'for update of u',
      () => operator.patch(`/people/${owner.personId}`, { role: 'viewer' }),
      () => owner.post(`${path}/${decision}`, body),
    )
    expect([decision, status]).toEqual([decision, 403])
    expect((await till.service.platform.get(path)).body.state).toBe('waiting')
  }
})
