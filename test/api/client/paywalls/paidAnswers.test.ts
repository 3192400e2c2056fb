import { expect, test } from 'bun:test'
import { PaidAnswers, type Sale } from '../../../../api/client/paywalls/paidAnswers.ts'
import { requestKey } from '../../../../api/client/paywalls/paidRequest.ts'

const payment = (validBefore: unknown) => ({ payload: { authorization: { validBefore } } })
const encode = (value: unknown) => btoa(JSON.stringify(value))

test('a paid request has the same idempotency key for as long as its payment is valid', async () => {
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

async function first<Answer>(answers: PaidAnswers<Answer>, key: string): Promise<Sale<Answer>> {
  const asked = await answers.ask(key)
  if (asked.kind !== 'first') throw new Error(`${key} was asked before`)
  return asked.sale
}

test('if the stored paid responses are too large together, the paywall drops the oldest, and does not sell them again', async () => {
  const answers = new PaidAnswers<number>()
  for (let n = 0; n < 200; n++) {
    ;(await first(answers, `key ${n}`)).sold({ answer: n, bytes: 256 * 1024 })
  }
  expect(await answers.ask('key 0')).toEqual({ kind: 'spent' })
  expect(await answers.ask('key 71')).toEqual({ kind: 'spent' })
  expect(await answers.ask('key 72')).toEqual({ kind: 'answered', answer: 72 })
  expect(await answers.ask('key 199')).toEqual({ kind: 'answered', answer: 199 })
})

test('the paywall keeps the responses of ten thousand paid requests in memory', async () => {
  const answers = new PaidAnswers<number>()
  for (let n = 0; n <= 10_000; n++) {
    ;(await first(answers, `key ${n}`)).sold({ answer: n, bytes: 1 })
  }
  expect(await answers.ask('key 1')).toEqual({ kind: 'answered', answer: 1 })
  expect((await answers.ask('key 0')).kind).toBe('first')
})

test('the first outcome of a paid request is final, and a later sale does not replace the stored response', async () => {
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
