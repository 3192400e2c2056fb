/** Tests at which hosts a purse (the wallet of a project) reveals its address by signing in. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readSignIn } from '../../../shared/purse/signIn.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { signInAt } from '../../../sql/purse/signIn.ts'
import { recordSpent } from '../../../sql/purse/watch.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newKeyring, newPurse, TERMS } from '../../support/purse/purseRows.ts'
import { newHash } from '../../support/till/tillRows.ts'

const URL_PAID = 'https://seller.test/weather'
const CAIP2 = 'eip155:84532'
const NOW_MS = Date.now()
const CHALLENGE = readSignIn(
  {
    'sign-in-with-x': {
      info: {
        domain: 'seller.test',
        uri: URL_PAID,
        version: '1',
        nonce: 'a1b2c3d4',
        issuedAt: new Date(NOW_MS).toISOString(),
      },
      supportedChains: [{ chainId: CAIP2, type: 'eip191' }],
    },
  },
  { url: URL_PAID, caip2: CAIP2, nowMs: NOW_MS },
)!

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

/** Makes a purse (wallet) that may have paid the seller, and a second purchase that requests the seller's price. */
async function newScene({ hasPaid = true } = {}) {
  const purse = await newPurse(pool, keyring)
  if (hasPaid) {
    const paid = await purse.wanted(1_000n)
    await purse.reserve([paid])
    const seen = { txHash: newHash(), logIndex: 1, blockNumber: 7n, blockHash: newHash() }
    await recordSpent(pool, paid.id, seen, () => '')
  }
  const { id } = await purse.wanted(1_000n)
  const signIn = async (url = URL_PAID) => {
    const at = { url, network: TERMS.network }
    const header = await signInAt(pool, { id, challenge: CHALLENGE, at, keyring })
    return header?.name ?? null
  }
  return { id, signIn, projectId: purse.projectId }
}

test('a purse (wallet) signs in only at a seller that it has paid before', async () => {
  expect(await (await newScene()).signIn()).toBe('SIGN-IN-WITH-X')
  expect(await (await newScene({ hasPaid: false })).signIn()).toBeNull()
})

test.each([
  ['the purse is stopped', 'update purses set frozen_at = now() where project_id = $1'],
  ['the mandate is stopped', `update mandates set state = 'frozen' where project_id = $1`],
  ['the mandate has ended', `update mandates set state = 'ended' where project_id = $1`],
  ['the project is deleted', 'update projects set deleted_at = now() where id = $1'],
  [
    'the purchase has failed',
    `update purchases set state = 'failed', ended_at = now() where project_id = $1 and state = 'asking'`,
  ],
])('a purse does not sign in if %s', async (_, change) => {
  const { signIn, projectId } = await newScene()
  await pool.query(change, [projectId])
  expect(await signIn()).toBeNull()
})
