import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'

import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Mover } from '../../../api/smtp/mover.ts'
import { Spool } from '../../../api/smtp/spool.ts'
import { noBlobs } from '../../support/blobs.ts'
import { createTestDatabase } from '../../support/database.ts'
import { silentLog } from '../../support/service.ts'
import { newProject } from '../../support/tillRows.ts'
import { waitFor } from '../../support/waitFor.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'purser-spool-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const mail = (text: string) => ({
  bytes: Buffer.from(text),
  envelopeFrom: 'ada@example.com',
  inboxes: [{ address: 'a@mail.test', envelopeTo: 'a@mail.test' }],
  remoteIp: '192.0.2.1',
  helo: 'example.com',
  receivedAt: new Date(),
})
const ALL = { count: 100, maxBytes: 1_000_000 }
const WHOLE = { count: 1_000, maxBytes: 1_000_000_000 }

describe('a copy of the spool', () => {
  test('holds the earlier mails with the same source keys while the listener continues', async () => {
    const spool = new Spool(join(folder, 'here'))
    spool.updateAddresses({ add: ['a@mail.test'] })
    await Promise.all([spool.accept(mail('One')), spool.accept(mail('Two'))])
    // Another process takes the copy.
    const second = new Spool(join(folder, 'here'))
    mkdirSync(join(folder, 'there'))
    second.copyTo(join(folder, 'there'))
    await second.close()
    await spool.accept(mail('Three'))
    const copy = new Spool(join(folder, 'there'))
    expect(copy.oldest('small', ALL)).toEqual(spool.oldest('small', ALL).slice(0, 2))
    expect(copy.knownAddress(['a@mail.test'])).toBe('a@mail.test')
    await copy.accept(mail('Four'))
    expect([copy.depth().count, spool.depth().count]).toEqual([3, 3])
    await copy.close()
    await spool.close()
  })

  test('is readable only by its owner', async () => {
    const spool = new Spool(join(folder, 'here'))
    spool.copyTo(folder)
    await spool.close()
    expect(statSync(join(folder, 'spool.sqlite')).mode & 0o777).toBe(0o600)
  })
})

test('mail of many connections at once is stored whole; an error leaves the next mail alone', async () => {
  const spool = new Spool(folder)
  const texts = Array.from({ length: 300 }, (_, n) => `${n} ${'x'.repeat(n * 300)}`)
  await Promise.all(texts.map((text) => spool.accept(mail(text))))
  const stored = [...spool.oldest('small', WHOLE), ...spool.oldest('large', WHOLE)]
  expect(new Set(stored.map(({ bytes }) => Buffer.from(bytes).toString()))).toEqual(new Set(texts))
  expect(stored.length).toBe(texts.length)
  const file = new Database(join(folder, 'spool.sqlite'))
  file.run('alter table mails rename to hidden')
  const refused = await Promise.allSettled([spool.accept(mail('a')), spool.accept(mail('b'))])
  expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  file.run('alter table hidden rename to mails')
  await spool.remove(stored.map(({ sourceKey }) => sourceKey))
  await spool.accept(mail('after'))
  expect(spool.depth().count).toBe(1)
  file.close()
  await spool.close()
})

test('a closed spool has all mail that was accepted, and opens again', async () => {
  const spool = new Spool(folder)
  const accepted = spool.accept(mail('one'))
  await spool.close()
  await accepted
  const again = new Spool(folder)
  expect(again.depth().count).toBe(1)
  await again.close()
})

test('a deleted address is unknown at once', async () => {
  const spool = new Spool(folder)
  spool.updateAddresses({ add: ['a@mail.test', 'b@mail.test'] })
  expect(spool.knownAddress(['x@mail.test', 'a@mail.test'])).toBe('a@mail.test')
  expect(spool.knownAddress(['b@mail.test'])).toBe('b@mail.test')
  spool.updateAddresses({ remove: ['a@mail.test'] })
  expect(spool.knownAddress(['a@mail.test'])).toBeNull()
  spool.replaceAddresses({ after: '', upTo: null, addresses: ['a@mail.test'] })
  expect([spool.knownAddress(['a@mail.test']), spool.knownAddress(['b@mail.test'])]).toEqual([
    'a@mail.test',
    null,
  ])
  await spool.close()
})

test('a small mail moves while a large one waits', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const { rows } = await pool.query('select email_address from projects where id = $1', [
    await newProject(pool),
  ])
  const address: string = rows[0].email_address
  const inboxes = [{ address, envelopeTo: address }]
  const spool = new Spool(folder)
  await spool.accept({ ...mail('x'.repeat(100_000)), inboxes })
  const [large] = spool.oldest('large', ALL)
  const moved = async () => {
    const sizes = `select octet_length(bytes) as size from raw_mails order by size`
    return (await pool.query(sizes)).rows.map(({ size }) => size)
  }
  const blocker = await pool.connect()
  await blocker.query('begin')
  // The insert of the large mail waits for this row.
  await blocker.query(`insert into raw_mails (source_key, bytes) values ($1, '')`, [
    large!.sourceKey,
  ])
  const mover = new Mover({ spool, pool, blobs: noBlobs, log: silentLog })
  await spool.accept({ ...mail('small'), inboxes })
  mover.nudge('small')
  await waitFor('the small mail', async () => (await moved()).length === 1)
  await waitFor('the end of its copy in the spool', () => spool.depth().count === 1)
  await blocker.query('rollback')
  blocker.release()
  await waitFor('the large mail', async () => (await moved()).length === 2)
  await mover.stop()
  expect(spool.depth().count).toBe(0)
  await spool.close()
})
