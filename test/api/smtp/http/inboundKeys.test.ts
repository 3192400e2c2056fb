/** Tests which keys a mail provider may use to deliver mail by HTTP, and for which domain each key is valid. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import pg from 'pg'
import { InboundKeys } from '../../../../api/smtp/http/inboundKeys.ts'
import { domainSecret } from '../../../../shared/mail/http/signedMail.ts'
import {
  newInboundSecret,
  revokeInboundSecrets,
} from '../../../../sql/mail/domains/inboundSecrets.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

const SECRETS = ['first', 'second'].map((id, n) => ({ id, secret: Buffer.alloc(32, n + 1) }))

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const keysOf = (db = pool) => new InboundKeys(db, SECRETS)

test('an inbound key from the operator’s settings may deliver mail for every domain, and needs no database', async () => {
  const ended = new pg.Pool({ connectionString: database.url })
  await ended.end()
  const keys = keysOf(ended)
  expect(await keys.find('second')).toEqual({ secrets: [SECRETS[1]!.secret], domain: null })
  for (const id of ['third', '', 'A.example#1', 'a.example#', 'a.example#x', 'a.example#1 '])
    expect([id, await keys.find(id)]).toEqual([id, null])
  await expect(keys.find('a.example#1')).rejects.toThrow()
})

test('a mail provider’s key for one domain is valid for this domain only, and has one secret for each inbound secret of the operator', async () => {
  const { keyId } = await newInboundSecret(pool, 'a.example')
  expect(await keysOf().find(keyId)).toEqual({
    secrets: SECRETS.map(({ secret }) => domainSecret(secret, keyId)),
    domain: 'a.example',
  })
  expect(await keysOf().find('a.example#99')).toBeNull()
})

test('an inbound key of a domain is refused after its revocation, and the domain’s new key is accepted', async () => {
  const keys = keysOf()
  const [first, other] = [
    await newInboundSecret(pool, 'b.example'),
    await newInboundSecret(pool, 'c.example'),
  ]
  expect((await keys.find(first.keyId))?.domain).toBe('b.example')
  await revokeInboundSecrets(pool, 'b.example')
  const second = await newInboundSecret(pool, 'b.example')
  // The lookup of an unknown inbound key makes the process read all inbound keys again, so its cache no longer contains
  // the revoked key.
  expect((await keys.find(second.keyId))?.domain).toBe('b.example')
  expect(await keys.find(first.keyId)).toBeNull()
  expect((await keys.find(other.keyId))?.domain).toBe('c.example')
})

test('an inbound key is valid until its expiry time', async () => {
  const keys = keysOf()
  const { keyId } = await newInboundSecret(pool, 'd.example')
  const expireIn = (interval: string) =>
    pool.query(
      `update inbound_secrets set expires_at = clock_timestamp() + $1::interval where domain = 'd.example'`,
      [interval],
    )
  await expireIn('1 hour')
  expect(await keys.find(keyId)).not.toBeNull()
  // The database column with the expiry of a key has a precision of milliseconds, so `0 seconds` could round up to a
  // time in the future, and the key would still be valid until then.
  await expireIn('-1 millisecond')
  expect(await keysOf().find(keyId)).toBeNull()
})

test('a mail provider’s inbound key that the process already has in memory stays valid while the database is unreachable', async () => {
  const own = new pg.Pool({ connectionString: database.url })
  const keys = keysOf(own)
  const { keyId } = await newInboundSecret(pool, 'e.example')
  expect(await keys.find(keyId)).not.toBeNull()
  await own.end()
  expect(await keys.find(keyId)).not.toBeNull()
  await expect(keys.find('e.example#2')).rejects.toThrow()
})
