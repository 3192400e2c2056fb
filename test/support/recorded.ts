/**
 * Compares lines with the lines that a file of test/fixtures records. If UPDATE_RECORDED is `true`, the function writes
 * the file instead, and the difference is then read as a part of the change.
 */
import { expect } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FIXTURES = join(import.meta.dir, '../fixtures')

/** @param file is the path of the file below test/fixtures. A recorded line contains no line break. */
export function expectRecorded(file: string, lines: readonly string[]): void {
  const path = join(FIXTURES, file)
  if (process.env.UPDATE_RECORDED === 'true') {
    writeFileSync(path, lines.map((line) => `${line}\n`).join(''))
  }
  const recorded = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
  expect(lines.filter((line) => !recorded.includes(line))).toEqual([])
  expect(recorded.filter((line) => !lines.includes(line))).toEqual([])
}
