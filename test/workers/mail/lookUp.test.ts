import { expect, test } from 'bun:test'
import type { TxtAnswer } from 'dns-packet'
import { createDns } from '../../../workers/mail/dns.ts'
import { createLookUp } from '../../../workers/mail/lookUp.ts'
import { startNameServer } from '../../support/nameServer.ts'

const txt = (name: string, data: string): TxtAnswer => ({ type: 'TXT', name, data: [data] })

test('the records of a sender are asked for once, however many messages it sends', async () => {
  await using server = await startNameServer([txt('sender.test', 'v=spf1 -all')])
  const lookUp = createLookUp(createDns([server.address]), [server.address])
  const records: unknown[] = await Promise.all([
    ...Array.from({ length: 20 }, () => lookUp('sender.test', 'TXT')),
    lookUp('Sender.Test', 'TXT'),
  ])
  expect(records).toEqual(Array(21).fill([['v=spf1 -all']]))
  expect(await lookUp('sender.test', 'TXT')).toEqual([['v=spf1 -all']])
  const missing = () => lookUp('none.test', 'TXT').catch((error) => error.code)
  expect(await Promise.all([missing(), missing()])).toEqual(['ENOTFOUND', 'ENOTFOUND'])
  expect(await missing()).toBe('ENOTFOUND')
  expect(server.asked).toEqual(['TXT sender.test', 'TXT none.test'])
})

test('kinds of records are kept apart', async () => {
  const name = 'both.test'
  await using server = await startNameServer([
    txt(name, 'text'),
    { type: 'A', name, data: '192.0.2.1' },
  ])
  const lookUp = createLookUp(createDns([server.address]), [server.address])
  expect(await lookUp(name, 'TXT')).toEqual([['text']])
  expect(await lookUp(name, 'A')).toEqual(['192.0.2.1'])
})

test('a failure is not kept: the next message asks anew', async () => {
  await using server = await startNameServer([])
  const lookUp = createLookUp(createDns([server.address]), [server.address])
  const failed = () => lookUp('broken.test', 'TXT').catch((error) => error.code)
  expect(await failed()).toBe('ESERVFAIL')
  const before = server.asked.length
  expect(await failed()).toBe('ESERVFAIL')
  expect(server.asked.length).toBe(2 * before)
})
