import { expect, test } from 'bun:test'
import { saysElse } from '../../../../shared/mail/visibleText/readableText.ts'

const words = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `word${from + n}`).join(' ')

test('a plain text counts as different from the HTML if more than half of its words are missing in the HTML', () => {
  expect(saysElse(words(10), words(5))).toBe(false)
  expect(saysElse(words(11), words(5))).toBe(true)
})

test('a plain text of fewer than five words never counts as different from the HTML', () => {
  expect([saysElse(words(4), ''), saysElse(words(5), '')]).toEqual([false, true])
})

test('links and words of the plain text are compared without regard to case, and Chinese text character by character', () => {
  expect(saysElse(`Confirm https://a.test/${words(30).replaceAll(' ', '/')}`, 'CONFIRM')).toBe(
    false,
  )
  expect(saysElse('请确认您的邮箱地址', '<p>请确认您的邮箱地址</p>')).toBe(false)
  expect(saysElse('请确认您的邮箱地址', '您好')).toBe(true)
})

test('only the first 5,000 words of a plain text are compared with the first 10,000 words of the HTML', () => {
  expect(saysElse(words(20_000), words(5_000))).toBe(false)
  const late = (before: number) => `${words(before, 50_000)} ${words(2_500)}`
  expect(saysElse(words(5_000), late(7_500))).toBe(false)
  expect(saysElse(words(5_000), late(7_501))).toBe(true)
})
