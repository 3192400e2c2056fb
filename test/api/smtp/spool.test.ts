import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Spool } from '../../../api/smtp/spool.ts'

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
    expect(copy.oldest(ALL)).toEqual(spool.oldest(ALL).slice(0, 2))
    expect(copy.knownAddress(['a@mail.test'])).toBe('a@mail.test')
    await copy.accept(mail('Four'))
    expect([copy.count(), spool.count()]).toEqual([3, 3])
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
