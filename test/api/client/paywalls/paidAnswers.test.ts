import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { PaidAnswers, type Sale } from '../../../../api/client/paywalls/paidAnswers.ts'
import { requestKey } from '../../../../api/client/paywalls/paidRequest.ts'

afterEach(() => setSystemTime())

const payment = (validBefore: unknown) => ({ payload: { authorization: { validBefore } } })
const encode = (value: unknown) => btoa(JSON.stringify(value))

test('the idempotency key of a paid request stays the same while its payment is valid', async () => {
  const nowS = Math.floor(Date.now() / 1_000)
  const open = payment(String(nowS + 60))
  const key = await requestKey(encode(open), ['a'])
  expect(key).toMatch(/^[0-9a-f]{64}$/)
  expect(await requestKey(encode(open), ['a'])).toBe(key)
  expect(await requestKey(encode(open), ['b'])).not.toBe(key)
  expect(await requestKey(open, ['a'])).toMatch(/^[0-9a-f]{64}$/)
  for (const none of [
    encode(payment(String(nowS - 3_600))),
    encode(payment('soon')),
    encode(payment(undefined)),
    encode(null),
    'x',
    payment(String(nowS - 3_600)),
    `${encode(open)}${' '.repeat(20_000)}`,
  ]) {
    expect(await requestKey(none, ['a'])).toBeNull()
  }
})

test('the idempotency key of a paid request is a hash of the payment and the parts of the request', async () => {
  const open = payment('99999999999')
  const hash = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')
  expect(await requestKey(encode(open), ['a', [1]])).toBe(
    hash(JSON.stringify([encode(open), 'a', [1]])),
  )
  expect(await requestKey(open, [])).toBe(hash(JSON.stringify([JSON.stringify(open)])))
})

test('a paid request has no idempotency key if its payment is longer than 16,384 characters', async () => {
  const open = payment('99999999999')
  const header = (chars: number) => encode(open) + ' '.repeat(chars - encode(open).length)
  const object = (chars: number) => ({
    ...open,
    pad: 'a'.repeat(chars - JSON.stringify({ ...open, pad: '' }).length),
  })
  for (const [chars, hasKey] of [
    [16_384, true],
    [16_385, false],
  ] as const) {
    for (const given of [header(chars), object(chars)]) {
      expect([chars, (await requestKey(given, [])) !== null]).toEqual([chars, hasKey])
    }
  }
})

test('the paywall keeps the idempotency key of a paid request until ten minutes after the payment becomes invalid', async () => {
  const endS = 2_000_000_000
  for (const [lateMs, hasKey] of [
    [600_000, true],
    [600_001, false],
  ] as const) {
    setSystemTime(endS * 1_000 + lateMs)
    const key = await requestKey(payment(String(endS)), [])
    expect([lateMs, key !== null]).toEqual([lateMs, hasKey])
  }
})

async function first<Answer>(answers: PaidAnswers<Answer>, key: string): Promise<Sale<Answer>> {
  const asked = await answers.ask(key)
  if (asked.kind !== 'first') throw new Error(`${key} was asked before`)
  return asked.sale
}

test('if the stored paid responses need too much memory, the paywall drops the oldest of them, and refuses later requests with their payments', async () => {
  const answers = new PaidAnswers<number>()
  for (let n = 0; n < 200; n++) {
    ;(await first(answers, `key ${n}`)).sold({ answer: n, bytes: 256 * 1024 })
  }
  expect(await answers.ask('key 0')).toEqual({ kind: 'spent' })
  expect(await answers.ask('key 71')).toEqual({ kind: 'spent' })
  expect(await answers.ask('key 72')).toEqual({ kind: 'answered', answer: 72 })
  expect(await answers.ask('key 199')).toEqual({ kind: 'answered', answer: 199 })
})

test('the paywall keeps the responses to at most ten thousand paid requests in memory', async () => {
  const answers = new PaidAnswers<number>()
  for (let n = 0; n <= 10_000; n++) {
    ;(await first(answers, `key ${n}`)).sold({ answer: n, bytes: 1 })
  }
  expect(await answers.ask('key 1')).toEqual({ kind: 'answered', answer: 1 })
  expect((await answers.ask('key 0')).kind).toBe('first')
})

test('the first outcome of a paid request is final, and a later outcome does not replace the stored response', async () => {
  const answers = new PaidAnswers<number>()
  const sale = await first(answers, 'a')
  const waits = answers.ask('a')
  sale.sold({ answer: 1, bytes: 1 })
  sale.unsold()
  sale.sold({ answer: 2, bytes: 1 })
  expect([await waits, await answers.ask('a')]).toEqual([
    { kind: 'answered', answer: 1 },
    { kind: 'answered', answer: 1 },
  ])
  const other = await first(answers, 'b')
  const open = answers.ask('b')
  other.unsold()
  expect([(await open).kind, (await answers.ask('b')).kind]).toEqual(['open', 'first'])
})
