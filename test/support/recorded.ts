/**
 * Compares lines with the recorded lines in a file of test/fixtures. If UPDATE_RECORDED is `true`, the function writes
 * the file instead, and the author reviews the difference as a part of the change.
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
  expect(lines).toEqual(recorded)
}

/**
 * Sets the number of characters from which a text is cut in the recorded file. A cut text ends with the SHA-256 hash of
 * the whole text.
 */
const TEXT_MAX_CHARS = 1_000
/**
 * Sets the number of items from which a list is cut in the recorded file. A cut list ends with the SHA-256 hash of the
 * whole list.
 */
const ITEMS_MAX = 10

const hash = (text: string | Uint8Array) =>
  new Bun.CryptoHasher('sha256').update(text).digest('hex')

/** Returns an object as one line of JSON for `expectRecorded`. */
export const recordedLine = (value: unknown): string =>
  JSON.stringify(value, (_, part) => {
    if (typeof part === 'string' && part.length > TEXT_MAX_CHARS) {
      return `${part.slice(0, TEXT_MAX_CHARS)}… ${hash(part)}`
    }
    if (part instanceof Uint8Array) return hash(part)
    if (Array.isArray(part) && part.length > ITEMS_MAX) {
      return [...part.slice(0, ITEMS_MAX), hash(JSON.stringify(part))]
    }
    return part
  })
