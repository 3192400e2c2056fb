/** Tests the list of the purchases of a project, and the lookup of one purchase. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Keyring } from '../../../../shared/vault/envelope.ts'
import { listMandates } from '../../../../sql/purse/mandates.ts'
import { startSend } from '../../../../sql/purse/purchases/purchaseSteps.ts'
import {
  findPurchase,
  listPurchases,
  type PurchaseFilter,
} from '../../../../sql/purse/purchases/purchases.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newKeyring, newPurse, OTHER_PAYEE } from '../../../support/purse/purseRows.ts'
import { newSettled } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const FIRST_MS = Date.UTC(2026, 0, 1)
const at = (n: number) => new Date(FIRST_MS + n * 1_000)

/**
 * Makes a purse (wallet) with purchases, one second apart. Every second purchase (the even numbers) has reserved money.
 */
async function newPurchases(count: number) {
  const purse = await newPurse(pool, keyring)
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    const wanted = await purse.wanted(10_000n)
    if (n % 2 === 0) await purse.reserve([wanted])
    ids.push(wanted.id)
    await pool.query('update purchases set created_at = $2 where id = $1', [wanted.id, at(n)])
  }
  return { projectId: purse.projectId, ids }
}

describe('the list of purchases contains only purchases of one project that match the filters', () => {
  test('a list of purchases contains one project’s purchases that match every filter, newest first', async () => {
    await newPurchases(1)
    const { projectId, ids } = await newPurchases(4)
    const [mandate] = await listMandates(pool, { projectId, cursor: null, limit: 1 })
    await pool.query(`update purchases set host = 'other.test' where id = $1`, [ids[1]])
    await pool.query(`update purchases set state = 'answered' where id = $1`, [ids[2]])
    const row = async (id: string) =>
      (await findPurchase(pool, { projectId, id, keyring: null }))!.row
    for (const [filter, numbers] of [
      [{}, [3, 2, 1, 0]],
      [{ limit: 2 }, [3, 2]],
      [{ cursor: { atMs: +at(2), row: await row(ids[2]!) } }, [1, 0]],
      [{ cursor: { atMs: +at(2), row: (await row(ids[2]!)) + 1n } }, [2, 1, 0]],
      [{ money: 'open' }, [2, 0]],
      [{ money: 'spent' }, []],
      [{ host: 'other.test' }, [1]],
      [{ state: 'answered' }, [2]],
      [{ mandateId: mandate!.id }, [2, 0]],
      [{ mandateId: 'man_none' }, []],
      [{ from: at(2) }, [3, 2]],
      [{ until: at(2) }, [1, 0]],
      [{ from: at(1), until: at(3), money: 'open' }, [2]],
    ] as [Partial<PurchaseFilter>, number[]][]) {
      const found = await listPurchases(pool, {
        ...{ projectId, cursor: null, limit: 10, money: null, state: null, host: null },
        ...{ mandateId: null, from: null, until: null },
        ...filter,
      })
      expect([filter, found.map(({ id }) => ids.indexOf(id))]).toEqual([filter, numbers])
    }
  })
})

describe('a purchase is shown only to its own project, with its payment and refunds', () => {
  test('a purchase is found only in its own project', async () => {
    const [mine, other] = [await newPurchases(1), await newPurchases(1)]
    const find = (projectId: string, id: string) => findPurchase(pool, { projectId, id, keyring })
    expect(await find(mine.projectId, mine.ids[0]!)).toMatchObject({ id: mine.ids[0] })
    expect(await find(mine.projectId, other.ids[0]!)).toBeNull()
  })

  test('a purchase shows its payment’s state and its refunds only after the payment is signed', async () => {
    const { projectId, ids } = await newPurchases(3)
    const find = async (id: string) => (await findPurchase(pool, { projectId, id, keyring }))!
    expect(await find(ids[1]!)).toMatchObject({ terms: null, money: null, refunds: [] })
    const paid = await find(ids[0]!)
    expect(paid).toMatchObject({
      terms: { amountAtomic: 10_000n },
      money: { state: 'open', txHash: null, blockNumber: null, isFinal: false },
      refunds: [],
      answer: null,
    })
    const { payer, nonce } = paid.money!
    const sale = await newSettled(pool, { payer, nonce, recipient: OTHER_PAYEE } as never)
    await pool.query(`update purchases set kind = 'refund', refund_of = $2 where id = $1`, [
      ids[2],
      sale.id,
    ])
    await pool.query(
      `update purchases set money = 'spent', block_number = 9, final_at = clock_timestamp() where id = $1`,
      [ids[0]],
    )
    expect(await find(ids[0]!)).toMatchObject({
      money: { state: 'spent', blockNumber: 9n, isFinal: true },
      refunds: [{ id: ids[2], amountAtomic: 10_000n, state: 'open' }],
    })
  })
})

describe('a purchase is accepted only for an existing project that has fewer than 500 open purchases', () => {
  test('a purchase is refused as busy if 500 purchases of its project are open, and is accepted if 499 are open', async () => {
    const purse = await newPurse(pool, keyring)
    await purse.wanted(1n)
    const copy = (count: number) =>
      pool.query(
        `insert into purchases (id, project_id, kind, request_hash, method, host, path, max_atomic, asked_by, key_id,
           wrapped_key, ciphertext)
         select 'pur_' || gen_random_uuid(), project_id, kind, request_hash, method, host, path, max_atomic, asked_by,
           key_id, wrapped_key, ciphertext
         from (select * from purchases where project_id = $1 limit 1) p, generate_series(1, $2)`,
        [purse.projectId, count],
      )
    await copy(498)
    await purse.wanted(1n)
    await expect(purse.wanted(1n)).rejects.toThrow('busy')
  })

  test('if a project is deleted during the request, no purchase is made', async () => {
    const purse = await newPurse(pool, keyring)
    await pool.query('update projects set deleted_at = now() where id = $1', [purse.projectId])
    await expect(purse.wanted(1n)).rejects.toThrow('no_project')
  })
})

describe('a signed payment is sent only while its content is stored', () => {
  test('the service does not send a payment that is unsigned or whose content is deleted', async () => {
    const { ids } = await newPurchases(2)
    const [signed, unsigned] = ids as [string, string]
    expect(await startSend(pool, unsigned, keyring)).toBeNull()
    // The signature of the payment counted as the first sending, so this call is the second sending.
    expect(await startSend(pool, signed, keyring)).toMatchObject({ sends: 2 })
    await pool.query(
      'update purchases set key_id = null, wrapped_key = null, ciphertext = null where id = $1',
      [signed],
    )
    expect(await startSend(pool, signed, keyring)).toBeNull()
  })
})
