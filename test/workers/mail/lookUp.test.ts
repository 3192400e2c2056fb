import { expect, spyOn, test } from 'bun:test'
import type { TxtAnswer } from 'dns-packet'
import { createDns } from '../../../workers/mail/dns.ts'
import { createLookUp } from '../../../workers/mail/lookUp.ts'
import { dnsError } from '../../support/mail/fakeLookUp.ts'
import { startNameServer } from '../../support/mail/nameServer.ts'
import { waitFor } from '../../support/waitFor.ts'

const txt = (name: string, data: string): TxtAnswer => ({ type: 'TXT', name, data: [data] })

test('the DNS records of a sender domain are looked up only once for many messages', async () => {
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

test('the DNS cache stores each record type separately', async () => {
  const name = 'both.test'
  await using server = await startNameServer([
    // A TXT record can have one text that is split into two strings, as a DKIM key of 2048 bits does.
    { type: 'TXT', name, data: ['te', 'xt'] },
    { type: 'A', name, data: '192.0.2.1' },
  ])
  const lookUp = createLookUp(createDns([server.address]), [server.address])
  expect(await lookUp(name, 'TXT')).toEqual([['text']])
  expect(await lookUp(name, 'A')).toEqual(['192.0.2.1'])
})

test('the DNS cache does not store the failure of a name server', async () => {
  await using server = await startNameServer([])
  const lookUp = createLookUp(createDns([server.address]), [server.address])
  const failed = () => lookUp('broken.test', 'TXT').catch((error) => error.code)
  expect(await failed()).toBe('ESERVFAIL')
  const before = server.asked.length
  expect(await failed()).toBe('ESERVFAIL')
  // The resolver may repeat a query whose answer is late, so the test does not expect an exact number of queries.
  expect(server.asked.length).toBeGreaterThan(before)
})

test('the DNS cache stores that a name server did not answer', async () => {
  await using server = await startNameServer([])
  const silent = { txt: () => Promise.reject(dnsError('ETIMEOUT')) }
  let asked = 0
  const lookUp = createLookUp(
    {
      txt: () => {
        asked++
        return silent.txt()
      },
    },
    [server.address],
  )
  const failed = () => lookUp('Silent.test', 'TXT').catch((error) => error.code)
  expect([await failed(), await failed(), asked]).toEqual(['ETIMEOUT', 'ETIMEOUT', 1])
})

test('if a DNS name does not exist, the DNS cache stores this for every record type', async () => {
  await using server = await startNameServer([txt('text.test', 'text')])
  const lookUp = createLookUp(createDns([server.address]), [server.address])
  for (const name of ['none.test', 'text.test']) {
    for (let n = 0; n < 2; n++) {
      const answer = lookUp(name, 'A').catch((error) => error.code)
      expect(['ENOTFOUND', 'ENODATA']).toContain(await answer)
    }
  }
  expect(server.asked).toEqual(['A none.test', 'A text.test'])
})

test('half a minute after the lookup of a DNS record, the DNS cache returns the changed value of the record', async () => {
  const records = [txt('sender.test', 'old')]
  await using server = await startNameServer(records)
  const lookUp = createLookUp(createDns([server.address]), [])
  expect(await lookUp('sender.test', 'TXT')).toEqual([['old']])
  records[0] = txt('sender.test', 'new')
  expect(await lookUp('sender.test', 'TXT')).toEqual([['old']])
  const now = performance.now.bind(performance)
  const clock = spyOn(performance, 'now').mockImplementation(() => now() + 31_000)
  try {
    await waitFor('the new record', async () => {
      const [found] = (await lookUp('sender.test', 'TXT')) as string[][]
      return found![0] === 'new'
    })
  } finally {
    clock.mockRestore()
  }
})

/**
 * Returns a DNS lookup with a resolver that answers every name with the same text. `asked` lists the names that reached
 * the resolver, in order.
 */
function counting(text: string) {
  const asked: string[] = []
  const txt = async (name: string) => {
    asked.push(name)
    return [text]
  }
  return { asked, lookUp: createLookUp({ txt }, []) }
}

/**
 * Holds the text of a very large DNS record. The sender of a mail chooses the size of a DNS record and the length of
 * its name.
 */
const MEGABYTE = 'x'.repeat(1024 * 1024)

test('the DNS cache has a maximum size, and removes the oldest record when the cache is full', async () => {
  for (const [text, prefix] of [
    [MEGABYTE, ''],
    ['', MEGABYTE],
  ] as const) {
    const { asked, lookUp } = counting(text)
    const ask = (n: number) => lookUp(`${prefix}${n}`, 'TXT')
    for (let n = 0; n < 20; n++) await ask(n)
    await ask(19)
    expect(asked).toHaveLength(20)
    await ask(0)
    expect(asked).toHaveLength(21)
  }
})

test('a DNS lookup returns its answer even if its cache entry was removed before the answer arrived', async () => {
  const { promise, resolve: release } = Promise.withResolvers<string[]>()
  const txt = (name: string) => (name === 'slow.test' ? promise : Promise.resolve([MEGABYTE]))
  const lookUp = createLookUp({ txt }, [])
  const slow = lookUp('slow.test', 'TXT')
  for (let n = 0; n < 20; n++) await lookUp(`${n}.test`, 'TXT')
  release(['late'])
  expect(await slow).toEqual([['late']])
})
