/** Large messages that are not complete: the disk is shared, and a newcomer is served. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenConnection } from '../../../api/smtp/connectionLimits.ts'
import { type Incoming, IncomingMails } from '../../../api/smtp/incomingMail.ts'
import type { Pace } from '../../../shared/fair/pace.ts'

const MB = 1024 * 1024
const folders: string[] = []
const begun: Incoming[] = []
afterEach(async () => {
  for (const mail of begun.splice(0)) await mail.discard()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** Messages of 8 MB in all, and of 5 MB for one network. */
function mails() {
  const folder = mkdtempSync(join(tmpdir(), 'purser-incoming-'))
  folders.push(folder)
  const pace = { take: () => 0 } as unknown as Pace
  const incoming = new IncomingMails(folder, pace, { allBytes: 8 * MB, networkBytes: 5 * MB })
  const ended: string[] = []
  const begin = async (name: string, address: string, megabytes: number) => {
    const guest = { activeMs: 0, hangUp: () => ended.push(name) } as unknown as OpenConnection
    const mail = incoming.begin(address, [], guest)
    begun.push(mail)
    return { mail, isTaken: await mail.write(Buffer.alloc(megabytes * MB, name)) }
  }
  return { begin, ended }
}

test('past the bound of all, the slowest message of the greediest network ends', async () => {
  const { begin, ended } = mails()
  await begin('small', '10.0.1.1', 1)
  await begin('greedy slow', '10.0.2.1', 2)
  await begin('greedy fast', '10.0.2.1', 3)
  expect(ended).toEqual([])
  const { mail, isTaken } = await begin('newcomer', '10.0.3.1', 3)
  expect([isTaken, ended]).toEqual([true, ['greedy slow']])
  expect((await mail.bytes()).equals(Buffer.alloc(3 * MB, 'newcomer'))).toBe(true)
})

test('a message of the greediest network does not end others of its own for itself alone', async () => {
  const { begin, ended } = mails()
  await begin('other', '10.0.1.1', 4)
  const { isTaken } = await begin('alone', '10.0.2.1', 5)
  expect([isTaken, ended]).toEqual([true, []])
})

test('one network holds its share at most, and a message that has ended frees it', async () => {
  const { begin, ended } = mails()
  const first = await begin('first', '10.0.1.1', 3)
  expect((await begin('second', '10.0.1.1', 3)).isTaken).toBe(false)
  await first.mail.discard()
  expect((await begin('third', '10.0.1.1', 2)).isTaken).toBe(true)
  expect((await begin('other', '10.0.2.1', 1)).isTaken).toBe(true)
  expect(ended).toEqual([])
})
