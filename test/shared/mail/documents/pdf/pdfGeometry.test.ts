import { expect, test } from 'bun:test'
import { type Box, holds } from '../../../../../shared/mail/documents/pdf/pdfGeometry.ts'

test('text that begins on the edge of the page is on the page, and text beyond any edge is not', () => {
  const page: Box = [10, 20, 30, 40]
  const [left, bottom, right, top] = page
  for (const [x, y] of [
    [left, bottom],
    [right, top],
    [left, top],
    [right, bottom],
  ] as const) {
    expect([x, y, holds(page, x, y)]).toEqual([x, y, true])
  }
  for (const [x, y] of [
    [left - 1, 30],
    [right + 1, 30],
    [15, bottom - 1],
    [15, top + 1],
  ] as const) {
    expect([x, y, holds(page, x, y)]).toEqual([x, y, false])
  }
})
