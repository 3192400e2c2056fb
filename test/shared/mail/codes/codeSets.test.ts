/** Measures how well codes are found among numbers of every kind, and in mails that other people wrote. */
import { expect, test } from 'bun:test'
import { openSets, readSet } from '../../../codes/sets.ts'
import { hardNegatives, mixtures } from './codeMails/hardNegatives.ts'
import { percent, score } from './codeMails/score.ts'

const DRAWN = { aside: true, seed: 7 }

test('at most 40 codes are found in 300 random mails that contain no code', async () => {
  const { codes } = await score(hardNegatives(300, DRAWN))
  expect(codes.precision.all).toBeLessThanOrEqual(40)
})

test('one code among other numbers in a mail is found with a precision of 98 % and a recall of 93 %', async () => {
  const { codes } = await score(mixtures(300, DRAWN))
  expect(percent(codes.precision)).toBeGreaterThanOrEqual(98)
  expect(percent(codes.recall)).toBeGreaterThanOrEqual(93)
})

test('in mails of other authors, the precision is 96 % for codes and for links, and the recall 90 % and 94 %', async () => {
  const { codes, first, links } = await score(openSets().flatMap(readSet))
  expect(percent(codes.precision)).toBeGreaterThanOrEqual(96)
  expect(percent(codes.recall)).toBeGreaterThanOrEqual(90)
  expect(percent(first)).toBeGreaterThanOrEqual(90)
  expect(percent(links.precision)).toBeGreaterThanOrEqual(96)
  expect(percent(links.recall)).toBeGreaterThanOrEqual(94)
})
