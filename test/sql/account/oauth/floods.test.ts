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

const register = (name: string) =>
  registerClient(database.pool, { name, redirectUris: ['https://host.example/cb'] })

/** Adds 10,000 registered OAuth clients. The first of these OAuth clients is the oldest. */
const fillClients = (age: string) =>
  database.pool.query(
    `insert into oauth_clients (id, name, redirect_uris, created_at)
     select 'flood' || n, 'Flood', '{https://flood.example/cb}',
       clock_timestamp() - $1::interval + n * interval '1 millisecond' from generate_series(1, 10000) n`,
    [age],
  )

test('if there are too many OAuth apps, a new app replaces the oldest app that nobody has used for an hour', async () => {
  const used = await register('Used')
  await database.pool.query(
    `update oauth_clients set used_at = now(), created_at = now() - interval '1 year' where id = $1`,
    [used!.id],
  )
  await fillClients('2 hours')
  const late = await register('Late')
  expect(await findRegisteredClient(database.pool, late?.id ?? '')).toMatchObject({ name: 'Late' })
  expect(await findRegisteredClient(database.pool, 'flood1')).toBeNull()
  expect(await findRegisteredClient(database.pool, 'flood2')).not.toBeNull()
  expect(await findRegisteredClient(database.pool, used!.id)).not.toBeNull()
})

test('an OAuth app that registered within the last hour is not replaced by a new app', async () => {
  await fillClients('30 minutes')
  expect(await register('Late')).toBeNull()
  expect(await findRegisteredClient(database.pool, 'flood1')).not.toBeNull()
})

/** Adds 5,000 client metadata documents. The first of these documents is the oldest. */
const fillDocuments = (age: string) =>
  database.pool.query(
    `insert into oauth_client_documents (id, url, state, name, redirect_uris, wanted_at, fresh_until)
     select 'flood' || n, 'https://flood.example/' || n, 'ready', 'Flood', '{https://flood.example/cb}',
       clock_timestamp() - $1::interval + n * interval '1 millisecond', clock_timestamp() + interval '1 day'
     from generate_series(1, 5000) n`,
    [age],
  )
const LATE_URL = 'https://late.example/client'

test('if there are too many client metadata documents, a new document replaces the oldest that is older than an hour', async () => {
  await fillDocuments('2 hours')
  expect(await wantDocument(database.pool, documentId(LATE_URL), LATE_URL)).toBe(true)
  expect(await findDocument(database.pool, documentId(LATE_URL))).toEqual({ state: 'wanted' })
  expect(await findDocument(database.pool, 'flood1')).toBeNull()
  expect(await findDocument(database.pool, 'flood2')).not.toBeNull()
})

test('a client metadata document that was requested within the last hour is not replaced by a new document', async () => {
  await fillDocuments('30 minutes')
  expect(await wantDocument(database.pool, documentId(LATE_URL), LATE_URL)).toBe(false)
  expect(await findDocument(database.pool, 'flood1')).not.toBeNull()
})
