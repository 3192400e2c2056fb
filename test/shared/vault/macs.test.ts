/**
 * Tests MACs (message authentication codes) that are made with the master keys. One of them proves that a person has
 * signed in with a browser before.
 */
import { expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import { macsFor } from '../../../shared/vault/macs.ts'

const key = (id: string, fill: number) => ({ id, key: createSecretKey(Buffer.alloc(32, fill)) })
const PURPOSE = 'purser/browser'
const ADA = 'ada@example.com'

test('a MAC (message authentication code) is valid only for its own text and purpose, and under one of the service’s master keys', () => {
  const macs = macsFor([key('one', 1)], PURPOSE)
  const mac = macs.make(ADA)
  expect(mac).toMatch(/^[\w-]{43}$/)
  expect(macs.isOf(ADA, mac)).toBe(true)
  expect(macs.isOf('eve@example.com', mac)).toBe(false)
  expect(macs.isOf(ADA, '')).toBe(false)
  expect(macs.isOf(ADA, mac.slice(1))).toBe(false)
  expect(macsFor([key('two', 2)], PURPOSE).isOf(ADA, mac)).toBe(false)
  expect(macsFor([key('one', 1)], 'purser/other').isOf(ADA, mac)).toBe(false)
})

test('a MAC (message authentication code) stays valid after a new master key becomes the first key', () => {
  const mac = macsFor([key('one', 1)], PURPOSE).make(ADA)
  expect(macsFor([key('two', 2), key('one', 1)], PURPOSE).isOf(ADA, mac)).toBe(true)
})
