/**
 * Tests how many mails a network may send, how many mails an inbox may receive, and which networks count as guessing
 * addresses.
 */
import { describe, expect, test } from 'bun:test'
import { SenderRates } from '../../../api/smtp/senderRates.ts'

const ONE = '192.0.2.1'
const OTHER = '198.51.100.1'
const MINUTE_MS = 60_000

function rates(limits: { messagesPerIp?: number; messagesPerInbox?: number } = {}) {
  const clock = { ms: 0 }
  const made = new SenderRates({ messagesPerIp: 0, messagesPerInbox: 0, ...limits }, () => clock.ms)
  return { clock, made }
}
const times = (count: number, run: () => void) => {
  for (let n = 0; n < count; n++) run()
}

describe('a network may send only a limited number of mails a minute', () => {
  test('each network may send a fixed number of mails a minute, and one network does not reduce the number of another', () => {
    const { clock, made } = rates({ messagesPerIp: 2 })
    made.count(ONE, [])
    expect(made.takesFrom(ONE)).toBe(true)
    made.count(ONE, [])
    expect([made.takesFrom(ONE), made.takesFrom(OTHER)]).toEqual([false, true])
    clock.ms = MINUTE_MS - 1
    expect(made.takesFrom(ONE)).toBe(false)
    clock.ms = MINUTE_MS
    expect(made.takesFrom(ONE)).toBe(true)
  })

  test('an IPv6 site (/48) may send four times as many mails a minute as each /64 network of the site', () => {
    const { made } = rates({ messagesPerIp: 2 })
    const address = (network: number) => `2001:db8:1:${network}::1`
    for (let network = 1; network <= 3; network++) times(2, () => made.count(address(network), []))
    expect([made.takesFrom(address(3)), made.takesFrom(address(4))]).toEqual([false, true])
    times(2, () => made.count(address(4), []))
    expect([made.takesFrom(address(5)), made.takesFrom('2001:db8:2:1::1')]).toEqual([false, true])
  })

  test('a rate limit of 0 means that mails are not limited', () => {
    const { made } = rates()
    times(500, () => made.count(ONE, ['inbox']))
    expect([made.takesFrom(ONE), made.takesFor('inbox', ONE)]).toEqual([true, true])
  })
})

describe('an inbox receives only a limited number of mails a minute', () => {
  const MAX = 200
  /** Holds the number of mails that each network may always send to an inbox: 1 % of the limit of the inbox. */
  const LEAST = MAX / 100

  test('each inbox receives at most a fixed number of mails a minute from one network', () => {
    const { clock, made } = rates({ messagesPerInbox: MAX })
    times(MAX - 1, () => made.count(ONE, ['inbox', 'second']))
    expect(made.takesFor('inbox', ONE)).toBe(true)
    made.count(ONE, ['inbox'])
    expect(made.takesFor('inbox', ONE)).toBe(false)
    expect(made.takesFor('second', ONE)).toBe(true)
    expect(made.takesFor('third', ONE)).toBe(true)
    clock.ms = MINUTE_MS
    expect(made.takesFor('inbox', ONE)).toBe(true)
  })

  test('if one network floods an inbox, each other network may still send its guaranteed number of mails to this inbox', () => {
    const { made } = rates({ messagesPerInbox: MAX })
    times(MAX, () => made.count(ONE, ['inbox']))
    for (const address of [OTHER, null]) {
      times(LEAST, () => {
        expect(made.takesFor('inbox', address)).toBe(true)
        made.count(address, ['inbox'])
      })
      expect(made.takesFor('inbox', address)).toBe(false)
    }
    expect(made.takesFor('second', OTHER)).toBe(true)
  })

  test('an IPv6 site (/48) that floods an inbox may still send it only as many mails as are guaranteed to four networks', () => {
    const { made } = rates({ messagesPerInbox: MAX })
    const address = (network: number) => `2001:db8:1:${network}::1`
    times(MAX, () => made.count(ONE, ['inbox']))
    let taken = 0
    for (let network = 1; network <= 50; network++) {
      while (made.takesFor('inbox', address(network))) {
        made.count(address(network), ['inbox'])
        taken++
      }
    }
    expect(taken).toBe(4 * LEAST)
  })

  test('an inbox receives at most twice its limit from all networks together', () => {
    const { made } = rates({ messagesPerInbox: MAX })
    let taken = 0
    for (let host = 1; host <= 250; host++) {
      for (let n = 0; n < MAX && made.takesFor('inbox', `192.0.2.${host}`); n++) {
        made.count(`192.0.2.${host}`, ['inbox'])
        taken++
      }
    }
    expect(taken).toBe(2 * MAX)
  })

  test('even if the limit of an inbox is below 100 mails, each network may send it at least one mail', () => {
    const { made } = rates({ messagesPerInbox: 2 })
    times(2, () => made.count(ONE, ['inbox']))
    expect([made.takesFor('inbox', ONE), made.takesFor('inbox', OTHER)]).toEqual([false, true])
  })
})

test('after a hundred unknown recipients in ten minutes, the listener treats a network as one that guesses addresses', () => {
  const { clock, made } = rates()
  times(99, () => made.countUnknown(ONE))
  expect(made.isGuessing(ONE)).toBe(false)
  made.countUnknown(ONE)
  expect([made.isGuessing(ONE), made.isGuessing(OTHER)]).toEqual([true, false])
  clock.ms = 10 * MINUTE_MS - 1
  expect(made.isGuessing(ONE)).toBe(true)
  clock.ms = 10 * MINUTE_MS
  expect(made.isGuessing(ONE)).toBe(false)
})
