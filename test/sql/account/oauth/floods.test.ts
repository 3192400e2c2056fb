/** Tests that strangers who fill the tables of OAuth clients cannot prevent the registration of a later client. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import {
  documentId,
  findDocument,
  wantDocument,
} from '../../../../sql/account/oauth/clientDocuments.ts'
import { findRegisteredClient, registerClient } from '../../../../sql/account/oauth/oauthClients.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

let database: TestDatabase
beforeEach(async () => {
  await database?.[Symbol.asyncDispose]()
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const register = (name: string, network = '203.0.113.1') =>
  registerClient(database.pool, { name, redirectUris: ['https://host.example/cb'] }, network)

/**
 * Adds 10,000 registered OAuth clients, the oldest first.
 * @param networks is the number of networks that have registered these clients.
 */
const fillClients = (age: string, networks: number) =>
  database.pool.query(
    `insert into oauth_clients (id, name, redirect_uris, created_at, network)
     select 'flood' || n, 'Flood', '{https://flood.example/cb}',
       clock_timestamp() - $1::interval + n * interval '1 millisecond', 'flood' || n % $2::int
     from generate_series(1, 10000) n`,
    [age, networks],
  )

test('if there are too many OAuth apps, a new app replaces the oldest app that nobody has used for an hour', async () => {
  const used = await register('Used')
  await database.pool.query(
    `update oauth_clients set used_at = now(), created_at = now() - interval '1 year' where id = $1`,
    [used!.id],
  )
  await fillClients('2 hours', 10_000)
  const late = await register('Late')
  expect(await findRegisteredClient(database.pool, late?.id ?? '')).toMatchObject({ name: 'Late' })
  expect(await findRegisteredClient(database.pool, 'flood1')).toBeNull()
  expect(await findRegisteredClient(database.pool, 'flood2')).not.toBeNull()
  expect(await findRegisteredClient(database.pool, used!.id)).not.toBeNull()
})

test('an OAuth app that registered within the last hour is not replaced by a new app', async () => {
  await fillClients('30 minutes', 10_000)
  expect(await register('Late')).toBeNull()
  expect(await findRegisteredClient(database.pool, 'flood1')).not.toBeNull()
})

test('if two networks register as many OAuth apps as the table may hold, apps of other networks can still register and stay', async () => {
  const early = await register('Early', '198.51.100.1')
  await fillClients('30 minutes', 2)
  const late = await register('Late')
  const again = await register('Flood again', 'flood1')
  for (const id of [early!.id, late?.id ?? '', again?.id ?? '', 'flood3']) {
    expect([id, await findRegisteredClient(database.pool, id)]).not.toEqual([id, null])
  }
  // The networks flood0 and flood1 each had 5,000 apps, and each has lost its oldest app to a new app.
  for (const id of ['flood1', 'flood2']) {
    expect([id, await findRegisteredClient(database.pool, id)]).toEqual([id, null])
  }
})

/** Stores 5,000 client metadata documents in the database, in the order of their age. */
const fillDocuments = (age: string, networks: number) =>
  database.pool.query(
    `insert into oauth_client_documents (id, url, state, name, redirect_uris, wanted_at, fresh_until, network)
     select 'flood' || n, 'https://flood.example/' || n, 'ready', 'Flood', '{https://flood.example/cb}',
       clock_timestamp() - $1::interval + n * interval '1 millisecond', clock_timestamp() + interval '1 day',
       'flood' || n % $2::int
     from generate_series(1, 5000) n`,
    [age, networks],
  )
const want = (url: string) =>
  wantDocument(database.pool, { id: documentId(url), url, network: '203.0.113.1' })
const LATE_URL = 'https://late.example/client'

test('if there are too many client metadata documents, a new document replaces the oldest that is older than an hour', async () => {
  await fillDocuments('2 hours', 5_000)
  expect(await want(LATE_URL)).toBe(true)
  expect(await findDocument(database.pool, documentId(LATE_URL))).toEqual({ state: 'wanted' })
  expect(await findDocument(database.pool, 'flood1')).toBeNull()
  expect(await findDocument(database.pool, 'flood2')).not.toBeNull()
})

test('a client metadata document that was requested within the last hour is not replaced by a new document', async () => {
  await fillDocuments('30 minutes', 5_000)
  expect(await want(LATE_URL)).toBe(false)
  expect(await findDocument(database.pool, 'flood1')).not.toBeNull()
})

test('if one network fills the table of client metadata documents, another network’s document replaces one of this network', async () => {
  const early = 'https://early.example/client'
  expect(await want(early)).toBe(true)
  await fillDocuments('30 minutes', 1)
  expect(await want(LATE_URL)).toBe(true)
  for (const url of [early, LATE_URL]) {
    expect(await findDocument(database.pool, documentId(url))).toEqual({ state: 'wanted' })
  }
  expect(await findDocument(database.pool, 'flood1')).toBeNull()
})
