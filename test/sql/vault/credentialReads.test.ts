import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Keyring, masterKey } from '../../../shared/vault/envelope.ts'
import {
  type CredentialRead,
  openRead,
  readCredentials,
} from '../../../sql/vault/credentialReads.ts'
import { storeCredential } from '../../../sql/vault/credentials.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newProject } from '../../support/till/tillRows.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const keyring = new Keyring([masterKey('one', Buffer.alloc(32, 7))])
const read = (projectId: string, name: string, requestId: string, more = {}): CredentialRead => ({
  actor: { projectId, keyPrefix: `key of ${projectId}`, requestId },
  name,
  isOwner: false,
  ...more,
})

test('if several credentials are read in one batch, each read gets its own secret, outcome and entry in the audit log', async () => {
  const { pool } = database
  const [one, two] = [await newProject(pool), await newProject(pool)]
  const store = (projectId: string, name: string, more: object = {}, reveal?: 'owner') =>
    storeCredential(pool, {
      actor: { projectId, keyPrefix: 'k', requestId: 'r' },
      keyring,
      name,
      isOwner: true,
      ...(reveal === undefined ? {} : { reveal }),
      content: {
        type: 'API_KEY',
        data: { apiKey: `secret ${name} of ${projectId}` },
        metadata: {},
        expiresAt: null,
        allowedHosts: null,
        ...more,
      },
    })
  await store(one, 'a')
  await store(one, 'old', { expiresAt: new Date(Date.now() - 1_000) })
  await store(one, 'hidden', {}, 'owner')
  await store(two, 'a')
  const wanted = [
    read(one, 'a', 'r1'),
    read(two, 'a', 'r2'),
    read(one, 'missing', 'r3'),
    read(one, 'old', 'r4'),
    read(one, 'hidden', 'r5'),
    read(one, 'hidden', 'r6', { isOwner: true }),
    read(two, 'old', 'r7'),
    read(one, 'a', 'r8'),
  ]
  const rows = await readCredentials(pool, 'vault.get', wanted)
  const ends = await Promise.all(
    wanted.map(async (one, n) => {
      const end = await openRead(pool, { ...one, keyring }, rows[n]!)
      return end.kind === 'ok' ? (end.credential.data as { apiKey: string }).apiKey : end.kind
    }),
  )
  const secret = (name: string, projectId: string) => `secret ${name} of ${projectId}`
  expect(ends).toEqual([
    secret('a', one),
    secret('a', two),
    'not_found',
    'expired',
    'withheld',
    secret('hidden', one),
    'not_found',
    secret('a', one),
  ])
  const { rows: entries } = await pool.query(
    `select request_id, project_id, actor, subject, outcome from audit_log where action = 'vault.get' order by row`,
  )
  const outcomes = ['ok', 'ok', 'not_found', 'expired', 'refused', 'ok', 'not_found', 'ok']
  expect(entries).toEqual(
    wanted.map(({ actor, name }, n) => ({
      request_id: actor.requestId,
      project_id: actor.projectId,
      actor: actor.keyPrefix,
      subject: name,
      outcome: outcomes[n],
    })),
  )
  for (const [n, { audit_row: row }] of rows.entries()) {
    const { rows: found } = await pool.query('select request_id from audit_log where row = $1', [
      row,
    ])
    expect(found[0].request_id).toBe(wanted[n]!.actor.requestId)
  }
})
