import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'

import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Mover } from '../../../../api/smtp/spool/mover.ts'
import { Spool, type SpooledSize, sizeOf } from '../../../../api/smtp/spool/spool.ts'
import { SpoolTurns } from '../../../../api/smtp/spool/spoolTurns.ts'
import { Costs } from '../../../../shared/fair/costs.ts'
import { createPool } from '../../../../sql/db.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { addressOf } from '../../../support/mail/mailRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

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
const all = (spool: Spool, size: SpooledSize) =>
  spool.read(spool.arrivals(size, 0, 1_000).map(({ id }) => id))

test('the spool (disk queue of mail) counts and lists mails by indexes, because reading the bytes of large mails would take seconds', async () => {
  const spool = new Spool(folder)
  const file = new Database(join(folder, 'spool.sqlite'))
  const planOf = (sql: string) =>
    file
      .query<{ detail: string }, []>(`explain query plan ${sql}`)
      .all()
      .map(({ detail }) => detail)
      .join()
  expect(planOf('select count(*), min(received_at) from mails')).toContain('COVERING INDEX')
  for (const size of ['<=', '>']) {
    const listing = `select id, length(bytes) as size, remote_ip, inboxes from mails
      where length(bytes) ${size} 65536 and id > 0 order by id limit 100`
    expect([size, planOf(listing)]).toEqual([size, expect.stringContaining('COVERING INDEX')])
  }
  file.close()
  await spool.close()
})

describe('the service makes a copy of its spool (the file of accepted mail)', () => {
  test('a copy of the spool (disk queue of accepted mail), made while the listener runs, has all earlier mails with the same source keys', async () => {
    const spool = new Spool(join(folder, 'here'))
    spool.addresses.update({ add: ['a@mail.test'] })
    await Promise.all([spool.accept(mail('One')), spool.accept(mail('Two'))])
    // A second Spool object acts as another process that copies the spool (the file of accepted mail).
    const second = new Spool(join(folder, 'here'))
    mkdirSync(join(folder, 'there'))
    second.copyTo(join(folder, 'there'))
    await second.close()
    await spool.accept(mail('Three'))
    const copy = new Spool(join(folder, 'there'))
    expect(all(copy, 'small')).toEqual(all(spool, 'small').slice(0, 2))
    expect(copy.addresses.find(['a@mail.test'])).toBe('a@mail.test')
    await copy.accept(mail('Four'))
    expect([copy.depth().count, spool.depth().count]).toEqual([3, 3])
    await copy.close()
    await spool.close()
  })

  test('only the file’s owner can read the copy of the spool (disk queue of accepted mail)', async () => {
    const spool = new Spool(join(folder, 'here'))
    spool.copyTo(folder)
    await spool.close()
    expect(statSync(join(folder, 'spool.sqlite')).mode & 0o777).toBe(0o600)
  })
})

test('the spool (disk queue of mail) stores complete mails of many concurrent connections, and a failed mail does not damage the next one', async () => {
  const spool = new Spool(folder)
  const texts = Array.from({ length: 300 }, (_, n) => `${n} ${'x'.repeat(n * 300)}`)
  await Promise.all(texts.map((text) => spool.accept(mail(text))))
  const stored = [...all(spool, 'small'), ...all(spool, 'large')]
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

test('if the spool (disk queue of accepted mail) is closed and opened again, it still has all its mails', async () => {
  const spool = new Spool(folder)
  const accepted = spool.accept(mail('one'))
  await spool.close()
  await accepted
  const again = new Spool(folder)
  expect(again.depth().count).toBe(1)
  await again.close()
})

test('a spool (disk queue of mail) of an earlier release keeps its mails and takes new ones', async () => {
  const file = new Database(join(folder, 'spool.sqlite'))
  file.run(`create table mails (
    id integer primary key, source_key text not null unique, bytes blob not null, envelope_from text not null,
    inboxes text not null, remote_ip text not null, helo text not null, received_at integer not null)`)
  file.run(
    `insert into mails values (1, 'old', 'One', 'ada@example.com', '[]', '192.0.2.1', 'x', 0)`,
  )
  file.close()
  const spool = new Spool(folder)
  const provider = { name: 'relay', spf: 'pass' as const }
  await spool.accept({ ...mail('Two'), traceparent: 'trace', provider })
  expect(all(spool, 'small')).toMatchObject([
    { sourceKey: 'old', traceparent: null, provider: null },
    { traceparent: 'trace', provider },
  ])
  await spool.close()
})

test('a mail of 64 KB belongs to the queue of small mails, and a longer one to the queue of large mails', async () => {
  const spool = new Spool(folder)
  const sizes = { small: 64 * 1024, large: 64 * 1024 + 1 }
  for (const [size, bytes] of Object.entries(sizes)) {
    const text = 'x'.repeat(bytes)
    await spool.accept(mail(text))
    expect(sizeOf(Buffer.from(text))).toBe(size as SpooledSize)
    expect(all(spool, size as SpooledSize).map((one) => one.bytes.length)).toEqual([bytes])
  }
  await spool.close()
})

test('after the deletion of an inbox address, the address list of the spool (disk queue of mail) lacks this address at once', async () => {
  const spool = new Spool(folder)
  spool.addresses.update({ add: ['a@mail.test', 'b@mail.test'] })
  expect(spool.addresses.find(['x@mail.test', 'a@mail.test'])).toBe('a@mail.test')
  expect(spool.addresses.find(['b@mail.test'])).toBe('b@mail.test')
  spool.addresses.update({ remove: ['a@mail.test'] })
  expect(spool.addresses.find(['a@mail.test'])).toBeNull()
  spool.addresses.replace({ after: '', upTo: null, addresses: ['a@mail.test'] })
  expect([spool.addresses.find(['a@mail.test']), spool.addresses.find(['b@mail.test'])]).toEqual([
    'a@mail.test',
    null,
  ])
  await spool.close()
})

test('a small mail can move from the spool (disk queue) to the database while a large mail still waits in the spool', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const address = await addressOf(pool, await newProject(pool))
  const inboxes = [{ address, envelopeTo: address }]
  const spool = new Spool(folder)
  await spool.accept({ ...mail('x'.repeat(100_000)), inboxes })
  const [large] = all(spool, 'large')
  const moved = async () => {
    const sizes = `select octet_length(bytes) as size from raw_mails order by size`
    return (await pool.query(sizes)).rows.map(({ size }) => size)
  }
  const blocker = await pool.connect()
  await blocker.query('begin')
  // The locked database row keeps the large mail in the spool (the file of accepted mail), because the mail cannot be
  // inserted into PostgreSQL.
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

test('if PostgreSQL refuses one mail of the spool (disk queue), all other mails of its batch move to the database, and the refused mail stays', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const address = await addressOf(pool, await newProject(pool))
  const inboxes = [{ address, envelopeTo: address }]
  const spool = new Spool(folder)
  // The database column accepts only a UUID, so PostgreSQL refuses this mail at each attempt.
  const refused = { ...mail('refused'), inboxes, sourceKey: 'no UUID' }
  await Promise.all([
    spool.accept(refused),
    ...Array.from({ length: 20 }, (_, n) => spool.accept({ ...mail(`mail ${n}`), inboxes })),
  ])
  const errors: unknown[] = []
  const log = { ...silentLog, error: (fields: unknown) => errors.push(fields) } as typeof silentLog
  const mover = new Mover({ spool, pool, blobs: noBlobs, log })
  await waitFor('the other mails', () => spool.depth().count === 1)
  const stored = await pool.query('select count(*)::int as n from inbound_mails')
  expect(stored.rows[0].n).toBe(20)
  await spool.accept({ ...mail('later'), inboxes })
  mover.nudge('small')
  await waitFor('the later mail', () => spool.depth().count === 1)
  await mover.stop()
  expect(all(spool, 'small').map(({ sourceKey }) => sourceKey)).toEqual(['no UUID'])
  // The logged error about a refused mail names the mail once, and contains no part of the mail.
  expect(errors).toEqual([{ sourceKey: 'no UUID', code: '22P02' }])
  await spool.close()
})

test('while the database is unreachable, no mail moves from the spool (disk queue) to the database, and the spool keeps all its mails', async () => {
  const pool = createPool({ url: 'postgres://nobody@127.0.0.1:1/purser', size: 1, name: 'mover' })
  const spool = new Spool(folder)
  await spool.accept(mail('One'))
  const attempt = Promise.withResolvers<void>()
  const log = { ...silentLog, warn: () => attempt.resolve() } as unknown as typeof silentLog
  const mover = new Mover({ spool, pool, blobs: noBlobs, log })
  await attempt.promise
  const late = Bun.sleep(10_000).then(() => 'late')
  expect(await Promise.race([mover.stop(), late])).toBeUndefined()
  expect(spool.depth().count).toBe(1)
  await spool.close()
  await pool.end()
})

test('if the database has refused a mail, the mover (from the spool to the database) tries this mail again after ten minutes', async () => {
  const spool = new Spool(folder)
  let nowMs = 0
  const turns = new SpoolTurns(spool, 'small', new Costs(), () => nowMs)
  await Promise.all([spool.accept(mail('refused')), spool.accept(mail('other'))])
  const BATCH = { count: 10, maxBytes: 100_000 }
  const ids = () => turns.next(BATCH).map(({ id }) => id)
  expect(ids()).toEqual([1, 2])
  turns.setAside([1])
  expect(ids()).toEqual([2])
  await spool.remove(
    all(spool, 'small').flatMap(({ id, sourceKey }) => (id === 2 ? [sourceKey] : [])),
  )
  turns.moved([2])
  expect(ids()).toEqual([])
  nowMs = 10 * 60_000
  expect(ids()).toEqual([1])
  await spool.close()
})

test('if a mail has already left the spool, the mover (from the spool to the database) takes the next mail at once', async () => {
  const spool = new Spool(folder)
  const turns = new SpoolTurns(spool, 'small', new Costs())
  await spool.accept(mail('first'))
  await spool.accept(mail('second'))
  const BATCH = { count: 1, maxBytes: 100_000 }
  const [first] = turns.next(BATCH)
  await spool.remove([first!.sourceKey])
  expect(turns.next(BATCH).map(({ id }) => id)).toEqual([2])
  await spool.close()
})

test('a batch of mails that the mover takes from the spool to PostgreSQL ends at its maximum number of bytes', async () => {
  const spool = new Spool(folder)
  const turns = new SpoolTurns(spool, 'small', new Costs())
  for (let n = 0; n < 4; n++) await spool.accept(mail('x'.repeat(1_000)))
  const lengthFor = (maxBytes: number) => turns.next({ count: 10, maxBytes }).length
  expect([lengthFor(1), lengthFor(2_000), lengthFor(2_001)]).toEqual([1, 2, 3])
  await spool.close()
})

describe('mail of several inboxes and networks moves in turn from the spool (disk queue) to the database', () => {
  const floodTo = (inbox: string, remoteIp: string) => ({
    ...mail('x'.repeat(60_000)),
    inboxes: [{ address: inbox, envelopeTo: inbox }],
    remoteIp,
  })
  const BATCH = { count: 10, maxBytes: 100_000_000 }

  test('if one inbox is flooded with mail, mail for another inbox moves to the database first, and the flood gets a lower priority', async () => {
    const spool = new Spool(folder)
    const turns = new SpoolTurns(spool, 'small', new Costs())
    for (let n = 0; n < 60; n++) {
      await spool.accept(floodTo('flooded@mail.test', `192.0.2.${n % 20}`))
    }
    const first = turns.next(BATCH)
    await spool.remove(first.map(({ sourceKey }) => sourceKey))
    turns.moved(first.map(({ id }) => id))
    await spool.accept({ ...mail('Hello'), remoteIp: '198.51.100.1' })
    // The flooded inbox must not delay the other inbox, so the batch of the other inbox contains no mail of the flood.
    const second = turns.next(BATCH)
    expect(second.map(({ inboxes, priority }) => [inboxes[0]!.address, priority])).toEqual([
      ['a@mail.test', 0],
    ])
    await spool.remove(second.map(({ sourceKey }) => sourceKey))
    turns.moved(second.map(({ id }) => id))
    const third = turns.next(BATCH)
    expect(third.length).toBe(10)
    for (const { inboxes, priority } of third) {
      expect([inboxes[0]!.address, priority! > 0]).toEqual(['flooded@mail.test', true])
    }
    await spool.close()
  })

  test('if a mail service delivers a flood to one inbox over HTTP, its mail for another inbox still moves to the database first', async () => {
    const spool = new Spool(folder)
    const turns = new SpoolTurns(spool, 'small', new Costs())
    const overHttp = { remoteIp: '192.0.2.1', provider: { name: 'relay', spf: null } }
    for (let n = 0; n < 60; n++) {
      await spool.accept({ ...floodTo('flooded@mail.test', ''), ...overHttp })
    }
    const first = turns.next(BATCH)
    turns.moved(first.map(({ id }) => id))
    await spool.accept({ ...mail('Hello'), ...overHttp })
    const next = turns.next({ ...BATCH, count: 2 })
    expect(next.map(({ inboxes, priority }) => [inboxes[0]!.address, priority])).toEqual([
      ['a@mail.test', 0],
    ])
    await spool.close()
  })

  test('if a network writes to many inboxes, the mail of another network still moves to the database first', async () => {
    const spool = new Spool(folder)
    const turns = new SpoolTurns(spool, 'small', new Costs())
    for (let n = 0; n < 60; n++) await spool.accept(floodTo(`i${n}@mail.test`, '192.0.2.1'))
    const first = turns.next(BATCH)
    turns.moved(first.map(({ id }) => id))
    await spool.accept({ ...mail('Hello'), remoteIp: '198.51.100.1' })
    const addresses = turns.next({ ...BATCH, count: 2 }).map(({ inboxes }) => inboxes[0]!.address)
    expect(addresses).toContain('a@mail.test')
    await spool.close()
  })

  test('the spool (disk queue of mail) loses no mail when SQLite reuses a row number', async () => {
    const spool = new Spool(folder)
    const turns = new SpoolTurns(spool, 'small', new Costs())
    const seen: string[] = []
    for (let round = 0; round < 20; round++) {
      for (let n = 0; n <= round % 3; n++)
        await spool.accept(floodTo(`i${n}@mail.test`, '192.0.2.1'))
      await spool.accept(mail(`light ${round}`))
      const batch = turns.next({ ...BATCH, count: 2 })
      await spool.remove(batch.map(({ sourceKey }) => sourceKey))
      turns.moved(batch.map(({ id }) => id))
      seen.push(...batch.map(({ sourceKey }) => sourceKey))
    }
    for (let batch = turns.next(BATCH); batch.length > 0; batch = turns.next(BATCH)) {
      await spool.remove(batch.map(({ sourceKey }) => sourceKey))
      turns.moved(batch.map(({ id }) => id))
      seen.push(...batch.map(({ sourceKey }) => sourceKey))
    }
    expect([new Set(seen).size, seen.length, spool.depth().count]).toEqual([59, 59, 0])
    await spool.close()
  })
})
