/**
 * Tests the limits on the disk space for incomplete large mails, and that the mails of one network leave space for
 * other networks.
 */
import { afterEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenConnection } from '../../../api/smtp/connectionLimits.ts'
import { type Incoming, IncomingMails } from '../../../api/smtp/incomingMail.ts'
import { inboxSharer, networkSharers, type Sharer } from '../../../api/smtp/sharers.ts'
import type { Pace } from '../../../shared/fair/pace.ts'

const MB = 1024 * 1024
const folders: string[] = []
const begun: Incoming[] = []
afterEach(async () => {
  for (const mail of begun.splice(0)) await mail.discard()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/**
 * Limits incomplete mails to 8 MB for all networks together and to 5 MB for one sharer (network or inbox). Limits
 * complete mails in memory to `loadedMb` MB.
 */
function mails(loadedMb = 8) {
  const folder = mkdtempSync(join(tmpdir(), 'purser-incoming-'))
  folders.push(folder)
  const pace = { take: () => 0 } as unknown as Pace
  const incoming = new IncomingMails(folder, pace, {
    ...{ allBytes: 8 * MB, sharerBytes: 5 * MB, loadedBytes: loadedMb * MB },
  })
  const ended: string[] = []
  const beginFor = async (name: string, sharers: Sharer[], megabytes: number, alwaysMb = 0) => {
    const guest: OpenConnection = { sharers, activeMs: 0, hangUp: () => ended.push(name) }
    const mail = incoming.begin([], guest, { alwaysBytes: alwaysMb * MB })
    begun.push(mail)
    return { mail, isTaken: await mail.write(Buffer.alloc(megabytes * MB, name)) }
  }
  const begin = (name: string, address: string, megabytes: number) =>
    beginFor(name, networkSharers(address), megabytes)
  return { begin, beginFor, ended }
}

test('if incomplete mails use too many bytes in total, the network with the most bytes loses its slowest mail', async () => {
  const { begin, ended } = mails()
  await begin('small', '10.0.1.1', 1)
  await begin('greedy slow', '10.0.2.1', 2)
  await begin('greedy fast', '10.0.2.1', 3)
  expect(ended).toEqual([])
  const { mail, isTaken } = await begin('newcomer', '10.0.3.1', 3)
  expect([isTaken, ended]).toEqual([true, ['greedy slow']])
  expect((await mail.bytes()).equals(Buffer.alloc(3 * MB, 'newcomer'))).toBe(true)
})

test('if one network alone uses up the total limit of incomplete mails, no mail of another network is interrupted', async () => {
  const { begin, ended } = mails()
  await begin('other', '10.0.1.1', 4)
  const { isTaken } = await begin('alone', '10.0.2.1', 5)
  expect([isTaken, ended]).toEqual([true, []])
})

test('the incomplete mails of one network stay below the byte limit of a network, and a discarded mail frees its bytes', async () => {
  const { begin, ended } = mails()
  const first = await begin('first', '10.0.1.1', 3)
  expect((await begin('second', '10.0.1.1', 3)).isTaken).toBe(false)
  await first.mail.discard()
  expect((await begin('third', '10.0.1.1', 2)).isTaken).toBe(true)
  expect((await begin('other', '10.0.2.1', 1)).isTaken).toBe(true)
  expect(ended).toEqual([])
})

test('incomplete mails that a mail provider delivers count against the limits of their inboxes, so that a flooded inbox leaves space for other inboxes', async () => {
  const { beginFor, ended } = mails()
  const [flooded, other] = [inboxSharer('flooded'), inboxSharer('other')]
  await beginFor('first', [flooded], 3)
  expect((await beginFor('second', [flooded], 3)).isTaken).toBe(false)
  expect((await beginFor('for both inboxes', [flooded, other], 2)).isTaken).toBe(true)
  expect((await beginFor('quiet', [inboxSharer('quiet')], 3)).isTaken).toBe(true)
  expect(ended).not.toContain('quiet')
})

test('a mail below the guaranteed size is accepted, even if other mails of the same network or inbox use up all their bytes', async () => {
  const { beginFor } = mails()
  const key = { name: 'inbound key', factor: 1 }
  await beginFor('large', [key], 5)
  const small = await beginFor('small', [key], 1, 1)
  expect(small.isTaken).toBe(true)
  expect(await small.mail.write(Buffer.from('!'))).toBe(false)
})

test('a small mail stays in memory, and is accepted even if its network has reached its limit', async () => {
  const { begin } = mails()
  await begin('large', '10.0.1.1', 5)
  const small = await begin('small', '10.0.1.1', 1 / 16)
  expect(small.isTaken).toBe(true)
  expect((await small.mail.bytes()).equals(Buffer.alloc(MB / 16, 'small'))).toBe(true)
  expect(await small.mail.write(Buffer.from('!'))).toBe(false)
})

test('a large mail that arrives in parts is complete and in the right order when it is read', async () => {
  const { begin } = mails()
  const { mail } = await begin('a', '10.0.1.1', 1 / 32)
  const parts = ['b', 'c', 'd'].map((letter) => Buffer.alloc(MB / 16, letter))
  for (const part of parts) expect(await mail.write(part)).toBe(true)
  const whole = Buffer.concat([Buffer.alloc(MB / 32, 'a'), ...parts])
  expect((await mail.bytes()).equals(whole)).toBe(true)
})

test('if the file of a received large mail was cut off, reading the mail fails', async () => {
  const { begin } = mails()
  const { mail } = await begin('a', '10.0.1.1', 1)
  const folder = join(folders.at(-1)!, `incoming-${process.pid}`)
  truncateSync(join(folder, readdirSync(folder)[0]!), MB / 2)
  const late = Bun.sleep(5_000).then(() => 'late')
  await expect(Promise.race([mail.bytes(), late])).rejects.toThrow('is cut off')
})

test('a listener deletes the incomplete mails of listeners that no longer run, and keeps those of running listeners', () => {
  const folder = mkdtempSync(join(tmpdir(), 'purser-incoming-'))
  folders.push(folder)
  // On Linux, a process id is never above 2^22, so no process has this id.
  const names = ['incoming-5000000', `incoming-${process.ppid}`, `incoming-${process.pid}`, 'spool']
  for (const name of names) mkdirSync(join(folder, name, 'mail'), { recursive: true })
  const incoming = new IncomingMails(folder, { take: () => 0 } as unknown as Pace)
  expect(readdirSync(folder).toSorted()).toEqual(names.slice(1).toSorted())
  expect(readdirSync(join(folder, `incoming-${process.pid}`))).toEqual([])
  incoming.close()
  expect(readdirSync(folder).toSorted()).toEqual([`incoming-${process.ppid}`, 'spool'])
})

test('complete large mails wait on disk until enough memory is free, in their order, so that small ones cannot overtake a large one for ever', async () => {
  const { begin } = mails(3)
  const loaded: string[] = []
  const mailOf = async (name: string, address: string, megabytes: number) => {
    const { mail } = await begin(name, address, megabytes)
    const bytes = mail.bytes().then((whole) => {
      loaded.push(name)
      return whole
    })
    return { bytes, discard: mail.discard }
  }
  const first = await mailOf('a', '10.0.1.1', 1)
  await first.bytes
  const large = await mailOf('b', '10.0.2.1', 3)
  const small = await mailOf('c', '10.0.3.1', 1)
  // The small mail fits into memory beside the first mail, but the large mail waits before it.
  const other = await mailOf('d', '10.0.4.1', 2)
  expect(loaded).toEqual(['a'])
  await first.discard()
  expect((await large.bytes).equals(Buffer.alloc(3 * MB, 'b'))).toBe(true)
  await large.discard()
  await Promise.all([small.bytes, other.bytes])
  expect(loaded.slice(0, 2)).toEqual(['a', 'b'])
  await small.discard()
  await other.discard()
  const { mail } = await begin('above the limit', '10.0.1.1', 5)
  expect((await mail.bytes()).length).toBe(5 * MB)
})
