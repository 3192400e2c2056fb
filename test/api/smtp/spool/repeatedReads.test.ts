/**
 * Tests that the listener’s copies of addresses and rules stay correct, although the listener is notified of each
 * change only once.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
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
import { silentLog } from '../../../support/logs.ts'
import { addressOf } from '../../../support/mail/mailRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

/** Returns a copy of the database pool that passes each query to the function `query`. */
const poolWith = (query: (run: () => Promise<unknown>) => Promise<unknown>) =>
  new Proxy(database.pool, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (key !== 'query') return typeof value === 'function' ? value.bind(target) : value
      return (...given: unknown[]) =>
        query(async () => (value as (...of: unknown[]) => unknown).apply(target, given))
    },
  }) as Pool

/** Returns a database pool whose queries fail as long as `failures` is above zero. */
function shakyPool() {
  const state = { failures: 0 }
  const pool = poolWith(async (run) => {
    if (state.failures > 0 && state.failures--) throw new Error('Query read timeout')
    return await run()
  })
  return { pool, state }
}

/** Returns a database pool that can delay the result of its next query. */
function heldPool() {
  let hold: (() => Promise<void>) | null = null
  const held = {
    reads: 0,
    next() {
      const [read, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      hold = async () => {
        read.resolve()
        await go.promise
      }
      return { isRead: read.promise, go: go.resolve }
    },
  }
  const pool = poolWith(async (run) => {
    const mine = hold
    hold = null
    const result = await run()
    await mine?.()
    held.reads++
    return result
  })
  return { pool, held }
}

test('the listener refuses a blocked sender, even if its first read of the email rules failed', async () => {
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

/** Runs `work` with an address book (the listener's copy of the addresses) that has already read an inbox. */
async function withBook(
  pool: Pool,
  work: (scene: {
    book: AddressBook
    spool: Spool
    projectId: string
    address: string
  }) => Promise<void>,
): Promise<void> {
  const projectId = await newProject(database.pool)
  const address = await addressOf(database.pool, projectId)
  const folder = mkdtempSync(join(tmpdir(), 'purser-spool-'))
  const spool = new Spool(folder)
  const aliases = new Map<string, string[]>()
  const options = { spool, pool, databaseUrl: database.url, log: silentLog, aliases }
  const book = new AddressBook(options)
  try {
    await waitFor('the address', () => spool.addresses.find([address]))
    await work({ book, spool, projectId, address })
  } finally {
    await book.stop()
    await spool.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

test('if an inbox is deleted while the listener looks it up, the listener’s copy of the addresses does not keep this inbox', async () => {
  const { pool, held } = heldPool()
  await withBook(pool, async ({ book, spool, projectId, address }) => {
    // The listener's copy of the addresses lacks a new inbox until the notification about this inbox arrives.
    spool.addresses.update({ remove: [address] })
    const release = held.next()
    const found = book.find(address)
    await release.isRead
    const reads = held.reads
    await deleteProject(database.pool, projectId, null)
    await waitFor('the notification', () => held.reads > reads)
    release.go()
    expect(await found).toEqual({ inbox: address })
    await waitFor('its end', () => spool.addresses.find([address]) === null)
    expect(await book.find(address)).toBe('unknown')
  })
})

test('if the listener’s database query about a deleted inbox fails, the listener repeats it and then no longer knows the inbox', async () => {
  const { pool, state } = shakyPool()
  await withBook(pool, async ({ spool, projectId, address }) => {
    state.failures = 1
    await deleteProject(database.pool, projectId, null)
    await waitFor('its end', () => spool.addresses.find([address]) === null)
  })
})

test('the listener’s copy of the addresses holds every inbox, although it reads the addresses in pages of 5,000', async () => {
  await database.pool.query(
    `insert into projects (id, name, purpose, email_address)
     select 'prj_page' || n, 'Page', 'SELLER', 'page' || lpad(n::text, 5, '0') || '@mail.test' from generate_series(1, 10000) n`,
  )
  await withBook(database.pool, async ({ spool }) => {
    for (const n of ['00001', '05000', '05001', '10000']) {
      const address = `page${n}@mail.test`
      await waitFor(address, () => spool.addresses.find([address]))
    }
  })
})
