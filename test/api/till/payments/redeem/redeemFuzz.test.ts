/**
 * Sends ten thousand mutated payment headers to the redeem route. Each response must be a verdict, and none may confirm
 * a payment.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { amount } from '../../../../support/database/extent.ts'
import type { Agent } from '../../../../support/service.ts'
import { pay, redeem, startTestTill, type TestTill } from '../../../../support/till/till.ts'
import '../../../../support/long.ts'

const HEADERS = amount(10_000, 1_500)
const IN_FLIGHT = 24

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

/** Returns a pseudo-random generator (mulberry32). With the same seed, every run generates the same payment headers. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

const ODD: unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  '',
  ' ',
  '0x',
  '0x0',
  '-1',
  '1e9',
  '\u0000',
  '💸',
  [],
  {},
  [[]],
  'NaN',
  '9'.repeat(80),
  `0x${'f'.repeat(64)}`,
  `0x${'0'.repeat(40)}`,
  '__proto__',
  'base',
  'x'.repeat(5_000),
]

function mutate(header: string, random: (below: number) => number): string {
  const payload = JSON.parse(Buffer.from(header, 'base64').toString())
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
  switch (random(6)) {
    case 0: {
      // The test inserts no zero byte, because neither an HTTP header nor a JSON body of the service may contain one.
      const bytes = Buffer.from(header)
      for (let n = 0; n <= random(4); n++) bytes[random(bytes.length)] = 1 + random(255)
      return bytes.toString('latin1')
    }
    case 1:
      return header.slice(0, random(header.length))
    case 2:
      return header.repeat(1 + random(16))
    case 3: {
      const holder = [payload, payload.payload, payload.payload.authorization][random(3)]
      const names = Object.keys(holder)
      holder[names[random(names.length)]!] = ODD[random(ODD.length)]
      return encode(payload)
    }
    case 4: {
      const { signature } = payload.payload
      const at = 2 + random(signature.length - 2)
      const digit = random(16).toString(16)
      payload.payload.signature = `${signature.slice(0, at)}${digit}${signature.slice(at + 1 + random(3))}`
      return encode(payload)
    }
    default:
      delete payload.payload.authorization[
        ['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce'][random(6)]!
      ]
      return Buffer.from(`${JSON.stringify(payload)}${'}'.repeat(random(2))}`).toString('base64')
  }
}

test(`${HEADERS} randomly changed payment headers cause no 5xx, no endless wait and no successful redeem`, async () => {
  const random = randomOf(402)
  const { header } = await pay()
  const reasons = new Map<string, number>()
  let slowestMs = 0
  let left = HEADERS
  const lane = async () => {
    while (left-- > 0) {
      const mutant = mutate(header, random)
      if (mutant === header) continue
      const startedMs = performance.now()
      const { status, body } = await redeem(seller, mutant)
      slowestMs = Math.max(slowestMs, performance.now() - startedMs)
      // Some mutations change only the spelling of the payment, for example the letter case of an address checksum, so
      // the payment stays valid.
      if (status !== 200 || typeof body.ok !== 'boolean') throw new Error(`${status} for ${mutant}`)
      const said = body.ok ? 'ok' : body.reason
      reasons.set(said, (reasons.get(said) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  expect(reasons.get('ok') ?? 0).toBeLessThanOrEqual(1)
  expect(reasons.has('unexpected_verify_error')).toBe(false)
  expect(slowestMs).toBeLessThan(10_000)
  process.stderr.write(
    `slowest of ${HEADERS}: ${Math.round(slowestMs)} ms; ${JSON.stringify(Object.fromEntries(reasons))}\n`,
  )
})
