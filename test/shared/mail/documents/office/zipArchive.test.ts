/** Tests how the service finds, unpacks and lists the files of a zip archive. */
import { describe, expect, test } from 'bun:test'
import { deflateRawSync } from 'node:zlib'
import { strToU8, type Zippable, zipSync } from 'fflate'
import { DocumentError } from '../../../../../shared/mail/documents/document.ts'
import { listArchive, ZipArchive } from '../../../../../shared/mail/documents/office/zipArchive.ts'
import '../../../../support/long.ts'

const END = 'PK\x05\x06'
const ENTRY = 'PK\x01\x02'
const LOCAL = 'PK\x03\x04'
const MB = 1024 * 1024

const zip = (files: Record<string, string>): Buffer =>
  Buffer.from(
    zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)]))),
  )

/** Changes a number in the archive's last record of the given kind. */
function changed(
  bytes: Buffer,
  record: string,
  at: number,
  value: number,
  size: 2 | 4 = 2,
): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUIntLE(value, copy.lastIndexOf(record, undefined, 'latin1') + at, size)
  return copy
}

/** Returns the reason of the error that a function call throws. */
function reasonOf(call: () => unknown): string | null {
  try {
    call()
    return null
  } catch (error) {
    if (error instanceof DocumentError) return error.reason
    throw error
  }
}
const textOf = (archive: ZipArchive, name: string) => {
  const bytes = archive.read(name)
  return bytes === null ? null : Buffer.from(bytes).toString()
}

describe('the service lists and unpacks the files of a zip archive', () => {
  const bytes = zip({ 'a.txt': 'Hello', 'b/c.txt': 'x'.repeat(1_000) })
  const archive = new ZipArchive(bytes)

  test('a zip archive names its files and their unpacked sizes', () => {
    expect(archive.names).toEqual(['a.txt', 'b/c.txt'])
    expect([archive.sizeOf('a.txt'), archive.sizeOf('b/c.txt'), archive.sizeOf('d')]).toEqual([
      5, 1_000, 0,
    ])
    expect(archive.isCut).toBe(false)
  })

  test('a file of a zip archive is unpacked by its name', () => {
    expect(textOf(archive, 'a.txt')).toBe('Hello')
    expect(textOf(archive, 'b/c.txt')).toBe('x'.repeat(1_000))
    expect(archive.read('d')).toBeNull()
  })

  test('the files in a zip archive may be compressed or uncompressed', () => {
    const stored = zipSync({ 'a.txt': [strToU8('Hello'), { level: 0 }] })
    expect(textOf(new ZipArchive(stored), 'a.txt')).toBe('Hello')
  })

  test('a zip archive without files is a valid archive', () => {
    expect(new ZipArchive(zip({})).names).toEqual([])
  })

  test('a zip archive can be read even if it is a part of a larger buffer', () => {
    const larger = Buffer.concat([Buffer.alloc(7), bytes, Buffer.alloc(3)])
    const inner = new ZipArchive(new Uint8Array(larger).subarray(7, 7 + bytes.length))
    expect(textOf(inner, 'a.txt')).toBe('Hello')
  })

  test('a zip archive may end with a comment of at most 65,535 bytes', () => {
    const behind = (length: number) => () =>
      new ZipArchive(Buffer.concat([bytes, Buffer.alloc(length, 'x')])).names.length
    expect(behind(65_535)()).toBe(2)
    expect(reasonOf(behind(65_536))).toBe('malformed')
  })

  test('if a zip archive has several end records, the last end record counts', () => {
    const empty = zip({})
    expect(new ZipArchive(Buffer.concat([bytes, empty])).names).toEqual([])
  })

  test('a zip archive may have extra fields and comments between its files', () => {
    const many = Buffer.from(
      zipSync({
        'a.txt': [strToU8('one'), { comment: 'a comment', extra: { 99: strToU8('extra') } }],
        'b.txt': [strToU8('two'), { comment: 'a comment' }],
      } satisfies Zippable),
    )
    const both = new ZipArchive(many)
    expect([textOf(both, 'a.txt'), textOf(both, 'b.txt')]).toEqual(['one', 'two'])
  })

  test('at most 10,000 files of a zip archive are listed', () => {
    const files = (count: number) =>
      new ZipArchive(zip(Object.fromEntries(Array.from({ length: count }, (_, n) => [`${n}`, '']))))
    const [whole, cut] = [files(10_000), files(10_001)]
    expect([whole.names.length, whole.isCut]).toEqual([10_000, false])
    expect([cut.names.length, cut.isCut]).toEqual([10_000, true])
  })
})

describe('the service recognises a damaged zip archive, and never reads outside of the archive', () => {
  const bytes = zip({ 'a.txt': 'Hello' })
  const open = (damaged: Buffer) => reasonOf(() => new ZipArchive(damaged))
  const unpack = (damaged: Buffer) => reasonOf(() => new ZipArchive(damaged).read('a.txt'))

  test('a zip archive without an end record counts as damaged', () => {
    expect(open(Buffer.alloc(0))).toBe('malformed')
    expect(open(Buffer.alloc(100))).toBe('malformed')
    expect(open(bytes.subarray(0, -1))).toBe('malformed')
  })

  test('a zip archive counts as damaged if it lists more files than it has, or if a listed position has no entry', () => {
    expect(open(changed(bytes, END, 10, 2))).toBe('malformed')
    expect(open(changed(bytes, END, 16, 0, 4))).toBe('malformed')
    expect(open(changed(bytes, END, 16, bytes.length, 4))).toBe('malformed')
    expect(open(changed(bytes, END, 16, bytes.length - 45, 4))).toBe('malformed')
  })

  test('a zip archive with two files of one name counts as damaged, because programs differ in which one they read', () => {
    const twice = Buffer.from(
      zip({ 'a.xml': 'one', 'b.xml': 'two' }).toString('latin1').replaceAll('b.xml', 'a.xml'),
      'latin1',
    )
    expect(reasonOf(() => new ZipArchive(twice).read('a.xml'))).toBe('malformed')
  })

  test('the directory of a zip archive may be at the very end of the archive', () => {
    const end = Buffer.from(bytes.subarray(bytes.lastIndexOf(END, undefined, 'latin1')))
    const entry = Buffer.alloc(46)
    entry.write(ENTRY, 'latin1')
    end.writeUInt32LE(22, 16)
    expect(new ZipArchive(Buffer.concat([end, entry])).names).toEqual([''])
  })

  test('a zip archive counts as damaged if there is no file at the position that an entry names', () => {
    expect(unpack(changed(bytes, ENTRY, 42, 1, 4))).toBe('malformed')
    expect(unpack(changed(bytes, ENTRY, 42, bytes.length, 4))).toBe('malformed')
    expect(unpack(changed(bytes, ENTRY, 42, bytes.length - 29, 4))).toBe('malformed')
    expect(unpack(changed(bytes, LOCAL, 0, 0))).toBe('malformed')
  })

  test('a zip archive may end with an empty file', () => {
    const end = bytes.subarray(bytes.lastIndexOf(END, undefined, 'latin1'))
    const entry = Buffer.alloc(46)
    entry.write(ENTRY, 'latin1')
    entry.writeUInt32LE(68, 42)
    const local = Buffer.alloc(30)
    local.write(LOCAL, 'latin1')
    const last = Buffer.concat([changed(Buffer.from(end), END, 16, 22, 4), entry, local])
    expect(textOf(new ZipArchive(last), '')).toBe('')
  })

  test('a zip archive counts as damaged if its bytes cannot be unpacked, or if its compression method is unknown', () => {
    const packed = changed(bytes, ENTRY, 10, 8)
    expect(unpack(changed(packed, LOCAL, 30 + 5, 0xffff))).toBe('malformed')
    for (const method of [1, 9, 12, 99])
      expect([method, unpack(changed(bytes, ENTRY, 10, method))]).toEqual([method, 'malformed'])
  })
})

test('an encrypted file in a zip archive is not unpacked', () => {
  const encrypted = new ZipArchive(changed(zip({ 'a.txt': 'Hello' }), ENTRY, 8, 1))
  expect(encrypted.sizeOf('a.txt')).toBe(5)
  expect(reasonOf(() => encrypted.read('a.txt'))).toBe('encrypted')
  expect(encrypted.read('b.txt')).toBeNull()
})

test('all files of a zip archive may unpack to at most 64 MiB together', () => {
  const half = deflateRawSync(Buffer.alloc(32 * MB), { level: 1 })
  const files = { one: [strToU8('1'), { level: 0 }], half: [half, { level: 0 }] } satisfies Zippable
  const archive = new ZipArchive(changed(Buffer.from(zipSync(files)), ENTRY, 10, 8))
  expect(archive.read('half')).toHaveLength(32 * MB)
  expect(archive.read('half')).toHaveLength(32 * MB)
  expect(reasonOf(() => archive.read('one'))).toBe('too_large')
  expect(reasonOf(() => archive.read('half'))).toBe('too_large')
})

describe('the name of a file in a zip archive is decoded as UTF-8 or Latin-1', () => {
  const NAME = Buffer.from('aXX.txt')
  const named = (letters: number[], flags: number) => {
    const bytes = changed(zip({ 'aXX.txt': '' }), ENTRY, 8, flags)
    bytes.set(letters, bytes.lastIndexOf(NAME) + 1)
    return new ZipArchive(bytes).names
  }

  test('a file name in a zip archive is read as UTF-8 if its bytes are valid UTF-8', () => {
    expect(named([0xc3, 0xbc], 0)).toEqual(['aü.txt'])
    expect(named([0xc3, 0xbc], 1 << 11)).toEqual(['aü.txt'])
  })

  test('a file name in a zip archive that is no valid UTF-8 is read as Latin-1, unless the archive claims UTF-8', () => {
    expect(named([0xfc, 0x58], 0)).toEqual(['aüX.txt'])
    expect(named([0xfc, 0x58], 1 << 11)).toEqual(['a\ufffdX.txt'])
  })
})

describe('the text of a zip archive is a list of its files', () => {
  test('the text of a zip archive is a list of its files with their sizes, without the folders', () => {
    const { text, omitted } = listArchive(new ZipArchive(zip({ 'b/': '', 'b/a.txt': 'Hello' })))
    expect(text).toBe('b/a.txt\t5 bytes')
    expect([...omitted]).toEqual([])
  })

  test('control characters in a file name become blanks in the text of a zip archive', () => {
    expect(listArchive(new ZipArchive(zip({ 'a\n\tb': '' }))).text).toBe('a b\t0 bytes')
  })

  test('the text of a zip archive lists at most 2,000 files, and the result says whether there are more', () => {
    const listed = (count: number) => {
      const files = Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, '']))
      const { text, omitted } = listArchive(new ZipArchive(zip(files)))
      return [text.split('\n').length, ...omitted]
    }
    expect(listed(2_000)).toEqual([2_000])
    expect(listed(2_001)).toEqual([2_000, 'truncated'])
  })

  test('the text of a zip archive is marked as incomplete if the archive has more files than its directory lists', () => {
    const one = zip({ a: '' })
    const [start, end] = [ENTRY, END].map((record) => one.lastIndexOf(record, undefined, 'latin1'))
    const entries = Buffer.concat(Array(10_001).fill(one.subarray(start, end)))
    const many = Buffer.concat([one.subarray(0, start), entries, one.subarray(end)])
    const { text, omitted } = listArchive(new ZipArchive(changed(many, END, 10, 10_001)))
    expect([text, ...omitted]).toEqual(['a\t0 bytes', 'truncated'])
  })
})
