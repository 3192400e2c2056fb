import { expect, test } from 'bun:test'
import { RecentReviews } from '../../../../api/mail/approval/recentReviews.ts'

const reviewOf = (chars: number) => ({
  pages: [[{ title: 'Text', pieces: [{ text: 'x'.repeat(chars) }] }]],
  obstacles: [],
})

/**
 * Creates a cache of reviews (the page texts that a person checks). The list `made` holds the cache key of each review
 * that was computed.
 */
function start() {
  const reviews = new RecentReviews()
  const made: string[] = []
  const read = (key: string, chars = 1_500_000) =>
    reviews.of(key, async () => {
      made.push(key)
      return reviewOf(chars)
    })
  return { reviews, made, read }
}

test('a review (the page texts of a mail that waits for approval) is computed only once while people read its pages', async () => {
  const { made, read } = start()
  const first = await read('a')
  expect(await read('a')).toBe(first)
  await read('b')
  expect(await read('a')).toBe(first)
  expect(made).toEqual(['a', 'b'])
})

test('a full cache of held mails’ reviews drops the reviews read the longest ago, but keeps the newest review even if it exceeds the limit', async () => {
  const { made, read } = start()
  for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) await read(key)
  expect(made).toEqual(['a', 'b', 'c', 'b'])
  await read('long', 5_000_000)
  await read('long')
  expect(made.slice(4)).toEqual(['long'])
  await read('a')
  expect(made.slice(5)).toEqual(['a'])
})

test('if two reviews of held mails (page texts for approvers) fill the cache exactly, both stay in it', async () => {
  const { made, read } = start()
  const half = 2_000_000 - 'a'.length - 100
  for (const key of ['a', 'b', 'a', 'b']) await read(key, half)
  expect(made).toEqual(['a', 'b'])
})

test('if a held mail has no review (page texts for the approver), the cache stores nothing, and the next read asks for the review again', async () => {
  const { reviews, read, made } = start()
  expect(await reviews.of('a', async () => null)).toBeNull()
  expect(await read('a')).not.toBeNull()
  expect(made).toEqual(['a'])
})
