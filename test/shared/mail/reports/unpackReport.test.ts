/** Tests how the service unpacks aggregate reports. */
import { describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { zipSync } from 'fflate'
import { ReportError } from '../../../../shared/mail/reports/aggregateReport.ts'
import { unpackReport } from '../../../../shared/mail/reports/unpackReport.ts'

const MAX = 10 * 1024 * 1024
const bytes = (text: string) => new TextEncoder().encode(text)
const zip = (content: Uint8Array, level: 0 | 6 = 6) => zipSync({ 'r.xml': [content, { level }] })
const faultOf = (given: Uint8Array) => {
  try {
    unpackReport(given)
  } catch (error) {
    return error instanceof ReportError ? error.message : error
  }
  return null
}
/** Returns a copy of an archive in which other bytes replace the bytes from a given offset on. */
function changed(archive: Uint8Array, at: number, ...values: number[]): Uint8Array {
  const copy = archive.slice()
  copy.set(values, at)
  return copy
}

test('a report is unpacked from gzip or a zip archive, or is read as plain text', () => {
  const text = '<feedback>ä</feedback>'
  expect(unpackReport(bytes(text))).toBe(text)
  expect(unpackReport(gzipSync(text))).toBe(text)
  expect(unpackReport(zip(bytes(text)))).toBe(text)
  expect(unpackReport(zip(bytes(text), 0))).toBe(text)
})

test('a text that begins with only half of an archive’s signature is read as plain text, and not as an archive', () => {
  expect(unpackReport(bytes('P{}'))).toBe('P{}')
  expect(unpackReport(bytes('xK'))).toBe('xK')
  expect(unpackReport(bytes('\u001f{}'))).toBe('\u001f{}')
  expect(unpackReport(Uint8Array.of(0x41, 0x8b))).toStartWith('A')
})

describe('a report is unpacked from the first file of a zip archive', () => {
  const archive = zip(bytes('{}'), 0)

  test('the first file of a zip archive is unpacked, and its name and extra field are skipped', () => {
    const two = zipSync({
      'one.json': [bytes('1'), { level: 0, extra: { 7: bytes('more') } }],
      'two.json': bytes('2'),
    })
    expect(unpackReport(two)).toBe('1')
  })

  test('a report in a zip archive can be read even if the archive is a part of a larger buffer', () => {
    const whole = Uint8Array.of(1, 2, 3, ...archive)
    expect(unpackReport(whole.subarray(3))).toBe('{}')
  })

  test('a zip archive without a file counts as empty', () => {
    expect(faultOf(zipSync({}))).toBe('its archive is empty')
    expect(faultOf(bytes('PK\u0005'))).toBe('its archive is empty')
  })

  test('a zip archive that is incomplete or uses an unknown compression method is refused', () => {
    expect(faultOf(archive.subarray(0, 29))).toBe('its archive is damaged')
    expect(faultOf(archive.subarray(0, 30))).toBe('its archive is empty')
    expect(faultOf(changed(archive, 8, 12, 0))).toBe(
      'its archive is packed in a way that is not known',
    )
    const broken = zip(bytes('x'.repeat(500)))
    expect(faultOf(changed(broken, 35, 0xff, 0xff))).toBe('its archive is damaged')
  })
})

test('a broken gzip file counts as damaged, and an empty file counts as empty', () => {
  expect(faultOf(gzipSync('hello').subarray(0, 12))).toBe('its archive is damaged')
  expect(faultOf(new Uint8Array(0))).toBe('its archive is empty')
  expect(faultOf(gzipSync(''))).toBe('its archive is empty')
})

test.each([
  ['text', (content: Uint8Array) => content],
  ['gzip', (content: Uint8Array) => gzipSync(content)],
  ['a deflated zip', (content: Uint8Array) => zip(content)],
  ['a stored zip', (content: Uint8Array) => zip(content, 0)],
])('a report in %s has at most ten mebibytes', (_name, pack) => {
  expect(faultOf(pack(new Uint8Array(MAX)))).toBeNull()
  expect(faultOf(pack(new Uint8Array(MAX + 1)))).toBe('it is too large')
})
