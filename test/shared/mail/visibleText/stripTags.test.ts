/** Tests which HTML counts as too complex for a parser that builds a tree. */
import { expect, test } from 'bun:test'
import { tooComplex } from '../../../../shared/mail/visibleText/stripTags.ts'

/** Names the maximum depth of nested elements. */
const DEPTH_MAX = 500

test('HTML counts as too complex if its elements are nested more than 500 levels deep', () => {
  for (const [open, levels] of [
    ['<div>', 1],
    ['<table><tr><td>', 3],
    ['<table><tbody><tr><th>', 4],
  ] as const) {
    const most = Math.floor(DEPTH_MAX / levels)
    expect([open, tooComplex(open.repeat(most))]).toEqual([open, false])
    expect([open, tooComplex(open.repeat(most + 1))]).toEqual([open, true])
  }
})

test('table rows and cells without an end tag count as siblings and not as nested elements', () => {
  expect(tooComplex(`<table>${'<tr><td>a<td>b'.repeat(2_000)}`)).toBe(false)
  expect(tooComplex(`<table>${'<tr><th>a'.repeat(2_000)}`)).toBe(false)
  expect(tooComplex(`<table>${'<tr>'.repeat(2_000)}`)).toBe(false)
})
