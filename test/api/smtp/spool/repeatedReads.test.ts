/** Tests that the listener repeats a failed read of addresses or of rules, because it hears of each change only once. */
import { afterAll, beforeAll, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AddressBook } from '../../../../api/smtp/addressBook.ts'
import { BlockedSenders } from '../../../../api/smtp/blockedSenders.ts'
import { Spool } from '../../../../api/smtp/spool/spool.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import type { Pool } from '../../../../sql/db.ts'
import { createRule } from '../../../../sql/mail/inbound/emailRules.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { addressOf } from '../../../support/mail/mailRows.ts'
import { silentLog } from '../../../support/service.ts'
import { newProject } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

/** Returns a database pool whose queries fail as long as `failures` is above zero. */
function shakyPool() {
  const state = { failures: 0 }
  const pool = new Proxy(database.pool, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (key !== 'query') return typeof value === 'function' ? value.bind(target) : value
      return async (...given: unknown[]) => {
        if (state.failures > 0 && state.failures--) throw new Error('Query read timeout')
        return await (value as (...of: unknown[]) => unknown).apply(target, given)
      }
    },
  }) as Pool
  return { pool, state }
}

test('a blocked sender is refused although the first read of the rules failed', async () => {
  const projectId = await newProject(database.pool)
  const inbox = await addressOf(database.pool, projectId)
  const rule = { type: 'BLOCK', scope: 'RECEIVE', value: 'foe@example.com' } as const
  await createRule(database.pool, projectId, rule)
  const { pool, state } = shakyPool()
  state.failures = 1
  const blocked = new BlockedSenders({ pool, databaseUrl: database.url, log: silentLog })
  try {
    await waitFor('the rule', () => blocked.has(inbox, 'foe@example.com'))
  } finally {
    await blocked.stop()
  }
})

test('a deleted inbox becomes unknown although the read of its address failed', async () => {
  const projectId = await newProject(database.pool)
  const address = await addressOf(database.pool, projectId)
  const folder = mkdtempSync(join(tmpdir(), 'purser-spool-'))
  const spool = new Spool(folder)
  const { pool, state } = shakyPool()
  const aliases = new Map<string, string[]>()
  const options = { spool, pool, databaseUrl: database.url, log: silentLog, aliases }
  const book = new AddressBook(options)
  try {
    await waitFor('the address', () => spool.addresses.find([address]))
    state.failures = 1
    await deleteProject(database.pool, projectId)
    await waitFor('its end', () => spool.addresses.find([address]) === null)
  } finally {
    await book.stop()
    await spool.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
