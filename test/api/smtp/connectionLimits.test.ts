import { expect, test } from 'bun:test'
import { ConnectionLimits } from '../../../api/smtp/connectionLimits.ts'
import { inboxSharer } from '../../../api/smtp/sharers.ts'

const never = () => expect.unreachable()

test('an IPv6 /64 network may open as many SMTP connections as one IP address, and a /48 network four times as many', () => {
  const limits = new ConnectionLimits({ max: 100, perAddressMax: 2 })
  const admitted = (address: string) => limits.enter(address, never) !== null
  expect([admitted('2001:db8::1'), admitted('2001:db8::2'), admitted('2001:db8::3')]).toEqual([
    true,
    true,
    false,
  ])
  for (let n = 1; n < 4; n++) {
    expect([admitted(`2001:db8:0:${n}::1`), admitted(`2001:db8:0:${n}::1`)]).toEqual([true, true])
  }
  expect(admitted('2001:db8:0:9::1')).toBe(false)
  expect(admitted('2001:db8:1::1')).toBe(true)
})

test('if the SMTP listener has its maximum of connections, a new one closes the longest idle connection of the network with the most connections', () => {
  const limits = new ConnectionLimits({ max: 4, perAddressMax: 10 })
  const ended: string[] = []
  const enter = (address: string, name: string, activeMs: number) => {
    const guest = limits.enter(address, () => ended.push(name))
    if (guest !== null) guest.activeMs = activeMs
    return guest
  }
  enter('10.0.0.9', 'small', 0)
  enter('10.0.0.1', 'busy', 30)
  enter('10.0.0.1', 'idle', 10)
  enter('10.0.0.1', 'other', 20)
  expect(enter('10.0.0.2', 'new', 40)).not.toBeNull()
  expect(ended).toEqual(['idle'])
  expect(enter('10.0.0.1', 'greedy', 50)).toBeNull()
  expect(ended).toEqual(['idle'])
})

test('if the end of an SMTP connection is reported twice, the listener accepts only one new connection in its stead', () => {
  const limits = new ConnectionLimits({ max: 1, perAddressMax: 1 })
  const guest = limits.enter('10.0.0.1', never)!
  limits.leave(guest)
  limits.leave(guest)
  expect(limits.enter('10.0.0.1', never)).not.toBeNull()
  expect(limits.enter('10.0.0.2', never)).toBeNull()
})

test('once the inbox that a mail service’s connection delivers to is known, the connection no longer counts against the limit of the mail service', () => {
  const limits = new ConnectionLimits({ max: 100, perAddressMax: 2 })
  const open = () => limits.enter('192.0.2.1', never)
  const deliver = (...inboxes: string[]) =>
    limits.countAs(open()!, inboxes.map(inboxSharer)).map(({ name }) => name.split(' ').at(-1))
  expect([deliver('flooded'), deliver('flooded')]).toEqual([['flooded'], ['flooded']])
  expect([deliver('other'), deliver('third', 'flooded')]).toEqual([['other'], ['third']])
  // The inbox already has its maximum of connections, so this connection still counts against the limit of the mail
  // service that opened it.
  expect(deliver('flooded')).toEqual([])
  expect([open() === null, open()]).toEqual([false, null])
  expect(limits.count()).toBe(6)
})

test('if the inbox of an SMTP connection becomes known only after the connection was closed, the connection is not counted again', () => {
  const limits = new ConnectionLimits({ max: 2, perAddressMax: 2 })
  const left = limits.enter('192.0.2.1', never)!
  limits.leave(left)
  limits.countAs(left, [inboxSharer('inbox')])
  expect(limits.count()).toBe(0)
})
