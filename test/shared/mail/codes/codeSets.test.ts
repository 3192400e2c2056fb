/** Codes among numbers of every kind, and in mails of strangers that were scored once. */
import { expect, test } from 'bun:test'
import { openSets, readSet } from '../../../codes/sets.ts'
import { hardNegatives, mixtures } from './codeMails/hardNegatives.ts'
import { percent, score } from './codeMails/score.ts'

const DRAWN = { aside: true, seed: 7 }

test('of 300 drawn mails without a code, 260 have none', async () => {
  const { codes } = await score(hardNegatives(300, DRAWN))
  expect(codes.precision.all).toBeLessThanOrEqual(40)
})

test('one code among other numbers is found: precision 98 %, recall 93 %', async () => {
  const { codes } = await score(mixtures(300, DRAWN))
  expect(percent(codes.precision)).toBeGreaterThanOrEqual(98)
  expect(percent(codes.recall)).toBeGreaterThanOrEqual(93)
})

test('mails of strangers: 94 % of the codes and 97 % of the links are right, 87 % and 94 % are found', async () => {
  const { codes, first, links } = await score(openSets().flatMap(readSet))
  expect(percent(codes.precision)).toBeGreaterThanOrEqual(94)
  expect(percent(codes.recall)).toBeGreaterThanOrEqual(87)
  expect(percent(first)).toBeGreaterThanOrEqual(87)
  expect(percent(links.precision)).toBeGreaterThanOrEqual(97)
  expect(percent(links.recall)).toBeGreaterThanOrEqual(94)
})
