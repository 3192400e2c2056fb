import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { beginIdempotent, findIdempotent } from '../../../../sql/account/idempotency.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { findPayment } from '../../../../sql/till/payments/payments.ts'
import { claimPayments, takeGrants, type WantedGrant } from '../../../../sql/till/settle/claims.ts'
import { recordHead } from '../../../../sql/till/watch/chainStatus.ts'
import { recordReorganised } from '../../../../sql/till/watch/finality.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  BLOCK,
  crossing,
  newClaim,
  newPayment,
  newProject,
  newSettled,
  OTHER_CHAIN_ID,
  settle,
  WALLET,
  whileHeld,
} from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let projectId: string

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  projectId = await newProject(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

describe('each payment authorization is claimed (reserved) only once, and only for an existing project', () => {
  test('no payment is claimed (reserved) for a deleted project', async () => {
    const gone = await newProject(pool)
    await deleteProject(pool, gone, null)
    expect(await claimPayments(pool, [newClaim(gone), newClaim(projectId)])).toEqual([false, true])
  })

  test('a claim of a payment (its reservation) waits while another process deletes the project, and is then refused', async () => {
    const doomed = await newProject(pool)
    const [made] = await whileHeld(
      pool,
      `with locked as (select id from projects where id = $1 for update)
       update projects p set deleted_at = clock_timestamp() from locked where p.id = locked.id`,
      [doomed],
      () => [claimPayments(pool, [newClaim(doomed)])],
    )
    expect(made).toEqual([false])
  })

  test('a claim of a payment (its reservation) stores the number of the latest block of its own chain, and not of another chain', async () => {
    const { chainId } = WALLET
    await recordHead(pool, { network: 'base-sepolia', chainId, number: 42n, hash: BLOCK.blockHash })
    const here = await newPayment(pool)
    const elsewhere = await newPayment(pool, { chainId: OTHER_CHAIN_ID })
    expect((await findPayment(pool, here))?.claimHead).toBe(42n)
    expect((await findPayment(pool, elsewhere))?.claimHead).toBeNull()
  })

  test('if two processes claim (reserve) the same payment authorizations in opposite orders, each authorization is claimed by only one process', async () => {
    const claims = [1, 2, 3, 4].map(() => newClaim(projectId))
    const [forth, back] = crossing(claims)
    const again = back.map((claim) => newClaim(projectId, { nonce: claim.nonce }))
    const held = claims.slice(0, 2).map((claim) => newClaim(projectId, { nonce: claim.nonce }))
    const insert = `insert into payments (id, project_id, resource_url, network, chain_id, asset, payer, recipient,
        amount_atomic, valid_after, valid_before, authorization_nonce, signature)
      select i.id, $1, 'held', 'base-sepolia', $2, $3, $4, $4, 1, 0, 1, i.nonce, '0x'
      from unnest($5::text[], $6::text[]) i (id, nonce)`
    const { asset, payer, chainId } = claims[0]!
    const values = [
      projectId,
      chainId,
      asset,
      payer,
      held.map(({ id }) => id),
      held.map(({ nonce }) => nonce),
    ]
    const [one, two] = await whileHeld(pool, insert, values, () => [
      claimPayments(pool, forth),
      claimPayments(pool, again),
    ])
    const [x1, , y1] = one!
    const [y2, , x2] = two!
    expect([x1 !== x2, y1 !== y2]).toEqual([true, true])
    expect([one![1], two![1]]).toEqual([false, false])
  })
})

describe('a settled payment grants access (lets the seller serve the resource) only once', () => {
  const grantOf = (
    paymentId: string,
    more: { projectId?: string; key?: WantedGrant['key'] } = {},
  ) => ({
    paymentId,
    projectId,
    key: null,
    result: `{"of":"${paymentId}"}`,
    ...more,
  })
  const take = async (paymentId: string) => (await takeGrants(pool, [grantOf(paymentId)]))[0]

  test('a payment grants access to the paid resource only once, only to its own project, and only after the payment has settled', async () => {
    const waiting = await newPayment(pool, { projectId })
    const { id } = await newSettled(pool, { projectId })
    expect(await take(waiting)).toBe(false)
    const stranger = await newProject(pool)
    expect(await takeGrants(pool, [grantOf(id, { projectId: stranger })])).toEqual([false])
    const twice = await takeGrants(pool, [grantOf(id), grantOf(id)])
    expect(twice.toSorted()).toEqual([false, true])
    expect(await take(id)).toBe(false)
  })

  test('after a reorganisation undid a payment, the payment grants access to the paid resource only after it has settled again', async () => {
    const { id, txHash } = await newSettled(pool, { projectId })
    await recordReorganised(pool, [{ paymentId: id, txHash, ...BLOCK }])
    expect(await take(id)).toBe(false)
    await settle(pool, id, txHash)
    expect(await take(id)).toBe(true)
  })

  test('a request for access to the paid resource waits while a reorganisation of the payment is recorded, and is then refused', async () => {
    const { id } = await newSettled(pool, { projectId })
    const takenBack = `update payments set state = 'verified' where id = $1`
    expect(await whileHeld(pool, takenBack, [id], () => [take(id)])).toEqual([false])
  })

  test('a request for access to the paid resource waits for a concurrent request for the same payment, and is then refused', async () => {
    const { id } = await newSettled(pool, { projectId })
    const taken = `update payments set granted_at = clock_timestamp() where id = $1`
    expect(await whileHeld(pool, taken, [id], () => [take(id)])).toEqual([false])
  })

  test('if two processes request access for the same payments in opposite orders, each payment grants access to the paid resource in only one process', async () => {
    const ids: string[] = []
    for (let n = 0; n < 4; n++) ids.push((await newSettled(pool, { projectId })).id)
    const [forth, back] = crossing(ids)
    const hold = 'select from payments where id = any ($1) for update'
    const [one, two] = await whileHeld(pool, hold, [ids.slice(0, 2)], () =>
      [forth, back].map((list) =>
        takeGrants(
          pool,
          list.map((id) => grantOf(id)),
        ),
      ),
    )
    expect([one![0] !== two![2], one![2] !== two![0]]).toEqual([true, true])
  })

  test('the response that grants access to the paid resource is stored only under the Idempotency-Key with which the payment’s project redeemed the payment', async () => {
    const stranger = await newProject(pool)
    const { id } = await newSettled(pool, { projectId })
    const begin = async (owner: string, operation: string, key: string) => {
      const request = { projectId: owner, operation, key, hash: Buffer.from('x') }
      const read = async () => (await beginIdempotent(pool, request)).result
      await read()
      return read
    }
    const own = await begin(projectId, 'redeem', 'order-1')
    const others = [
      await begin(projectId, 'redeem', 'order-2'),
      await begin(projectId, 'send', 'order-1'),
      await begin(stranger, 'redeem', 'order-1'),
    ]
    const grant = grantOf(id, { key: { key: 'order-1', hash: Buffer.from('x') } })
    expect(await takeGrants(pool, [grant])).toEqual([true])
    expect(await own()).toBe(grant.result)
    for (const other of others) expect(await other()).toBeNull()
  })

  test('a response that grants access to the paid resource is stored under an Idempotency-Key that no other call has reserved, and never under the key of another call', async () => {
    const [{ id }, { id: other }] = [
      await newSettled(pool, { projectId }),
      await newSettled(pool, { projectId }),
    ]
    const [hash, otherHash] = [Buffer.from('x'), Buffer.from('y')]
    const grant = grantOf(id, { key: { key: 'free', hash } })
    expect(await takeGrants(pool, [grant])).toEqual([true])
    expect(
      await takeGrants(pool, [grantOf(other, { key: { key: 'free', hash: otherHash } })]),
    ).toEqual([true])
    const request = { projectId, operation: 'redeem', key: 'free', hash }
    expect(await beginIdempotent(pool, request)).toEqual({
      requestHash: hash,
      result: grant.result,
    })
  })

  test('a response that grants access to the paid resource is stored under an Idempotency-Key that has expired, and replaces the old response', async () => {
    const { id } = await newSettled(pool, { projectId })
    await pool.query(
      `insert into idempotency_keys (project_id, operation, key, request_hash, created_at)
       values ($1, 'redeem', 'old', 'other', now() - interval '40 days')`,
      [projectId],
    )
    const grant = grantOf(id, { key: { key: 'old', hash: Buffer.from('x') } })
    expect(await takeGrants(pool, [grant])).toEqual([true])
    const found = await findIdempotent(pool, { projectId, operation: 'redeem', key: 'old' })
    expect(found).toEqual({ requestHash: Buffer.from('x'), result: grant.result })
  })

  test('if two payments that grant access in one batch have the same Idempotency-Key, only one of their responses is stored', async () => {
    const ids = [
      (await newSettled(pool, { projectId })).id,
      (await newSettled(pool, { projectId })).id,
    ]
    const key = { key: 'twice', hash: Buffer.from('x') }
    expect(
      await takeGrants(
        pool,
        ids.map((id) => grantOf(id, { key })),
      ),
    ).toEqual([true, true])
    const { result } = await beginIdempotent(pool, {
      ...{ projectId, operation: 'redeem', key: 'twice', hash: key.hash },
    })
    expect(ids.map((id) => grantOf(id).result)).toContain(result!)
  })
})
