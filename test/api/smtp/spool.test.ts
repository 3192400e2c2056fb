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

describe('a copy of the spool', () => {
  test('holds the earlier mails with the same source keys while the listener continues', async () => {
    const spool = new Spool(join(folder, 'here'))
    spool.updateAddresses({ add: ['a@mail.test'] })
    await Promise.all([spool.accept(mail('One')), spool.accept(mail('Two'))])
    // Another process takes the copy.
    const second = new Spool(join(folder, 'here'))
    mkdirSync(join(folder, 'there'))
    second.copyTo(join(folder, 'there'))
    second.close()
    await spool.accept(mail('Three'))
    const copy = new Spool(join(folder, 'there'))
    expect(copy.oldest('small', ALL)).toEqual(spool.oldest('small', ALL).slice(0, 2))
    expect(copy.knownAddress(['a@mail.test'])).toBe('a@mail.test')
    await copy.accept(mail('Four'))
    expect([copy.depth().count, spool.depth().count]).toEqual([3, 3])
    copy.close()
    spool.close()
  })

  test('is readable only by its owner', () => {
    const spool = new Spool(join(folder, 'here'))
    spool.copyTo(folder)
    spool.close()
    expect(statSync(join(folder, 'spool.sqlite')).mode & 0o777).toBe(0o600)
  })
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
  expect(spool.depth().count).toBe(1)
  await blocker.query('rollback')
  blocker.release()
  await waitFor('the large mail', async () => (await moved()).length === 2)
  await mover.stop()
  expect(spool.depth().count).toBe(0)
  spool.close()
})
