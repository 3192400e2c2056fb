import { inflateRawSync } from 'node:zlib'
import { errorCode } from '../../../errorCode.ts'
import { DocumentError, type DocumentText, TextWriter } from '../document.ts'

/** Sets the maximum number of files of one zip archive that the zip reader indexes by name. */
const ENTRIES_MAX = 10_000
/**
 * Sets the maximum number of unpacked bytes of all files in a zip archive together, because packed text usually has a
 * tenth of its size, but a zip bomb has a thousandth.
 */
const UNPACKED_MAX_BYTES = 64 * 1024 * 1024
/** Holds the offsets of fields in the records of a zip archive (APPNOTE.TXT 6.3.10, §4.3.16, §4.3.12 and §4.3.7). */
const END = { signature: 0x06054b50, bytes: 22, count: 10, directorySize: 12, directory: 16 }
const ENTRY = {
  ...{ signature: 0x02014b50, bytes: 46, flags: 8, method: 10, packed: 20, size: 24 },
  ...{ nameLength: 28, extraLength: 30, commentLength: 32, offset: 42 },
}
const LOCAL = { signature: 0x04034b50, bytes: 30, nameLength: 26, extraLength: 28 }
const COMMENT_MAX_BYTES = 0xffff
const [STORED, DEFLATED] = [0, 8]
const [ENCRYPTED, IS_UTF8] = [1, 1 << 11]

type Entry = { method: number; packed: number; size: number; offset: number; isEncrypted: boolean }

/**
 * Gives access to the files of a zip archive. Only the method `read` unpacks a file. The class does not open a zip
 * archive inside the archive.
 */
export class ZipArchive {
  readonly #bytes: Uint8Array
  readonly #entries = new Map<string, Entry>()
  /** Holds the names that several files have. Programs differ in which of these files they show. */
  readonly #repeated = new Set<string>()
  #unpacked = 0
  readonly isCut: boolean

  /** Reads the list of files at the end of a zip archive. @throws {DocumentError} if the list is malformed. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const end = findEnd(view)
    const count = view.getUint16(end + END.count, true)
    let at = view.getUint32(end + END.directory, true)
    this.isCut = count > ENTRIES_MAX
    for (let n = 0; n < Math.min(count, ENTRIES_MAX); n++) {
      if (at + ENTRY.bytes > bytes.length || view.getUint32(at, true) !== ENTRY.signature) {
        throw new DocumentError('malformed')
      }
      const flags = view.getUint16(at + ENTRY.flags, true)
      const length = view.getUint16(at + ENTRY.nameLength, true)
      const raw = bytes.subarray(at + ENTRY.bytes, at + ENTRY.bytes + length)
      const name = nameOf(raw, (flags & IS_UTF8) !== 0)
      if (this.#entries.has(name)) this.#repeated.add(name)
      this.#entries.set(name, {
        method: view.getUint16(at + ENTRY.method, true),
        packed: view.getUint32(at + ENTRY.packed, true),
        size: view.getUint32(at + ENTRY.size, true),
        offset: view.getUint32(at + ENTRY.offset, true),
        isEncrypted: (flags & ENCRYPTED) !== 0,
      })
      at +=
        ENTRY.bytes +
        length +
        view.getUint16(at + ENTRY.extraLength, true) +
        view.getUint16(at + ENTRY.commentLength, true)
    }
  }

  get names(): string[] {
    return [...this.#entries.keys()]
  }

  /** Returns the unpacked size of a file by the directory of the zip archive. */
  sizeOf(name: string): number {
    return this.#entries.get(name)?.size ?? 0
  }

  /**
   * Unpacks a file of the zip archive. @returns null if the zip archive has no file with the name.
   * @throws {DocumentError} if the file is damaged, if several files have the name, or if all files of the archive
   * together unpack to too many bytes.
   */
  read(name: string): Uint8Array | null {
    const entry = this.#entries.get(name)
    if (entry === undefined) return null
    if (this.#repeated.has(name)) throw new DocumentError('malformed')
    if (entry.isEncrypted) throw new DocumentError('encrypted')
    const packed = this.#packed(entry)
    const room = UNPACKED_MAX_BYTES - this.#unpacked
    const bytes = entry.method === STORED ? packed : inflate(packed, entry.method, room)
    if (bytes.length > room) throw new DocumentError('too_large')
    this.#unpacked += bytes.length
    return bytes
  }

  #packed({ offset, packed }: Entry): Uint8Array {
    const bytes = this.#bytes
    if (offset + LOCAL.bytes > bytes.length) throw new DocumentError('malformed')
    const local = new DataView(bytes.buffer, bytes.byteOffset + offset, LOCAL.bytes)
    if (local.getUint32(0, true) !== LOCAL.signature) throw new DocumentError('malformed')
    const start =
      offset +
      LOCAL.bytes +
      local.getUint16(LOCAL.nameLength, true) +
      local.getUint16(LOCAL.extraLength, true)
    return bytes.subarray(start, start + packed)
  }
}

/**
 * Finds the end record of a zip archive. The function searches backwards from the end of the archive, and takes the
 * first record that it finds.
 */
function findEnd(view: DataView): number {
  const first = Math.max(0, view.byteLength - END.bytes - COMMENT_MAX_BYTES)
  for (let at = view.byteLength - END.bytes; at >= first; at--) {
    if (view.getUint32(at, true) === END.signature) return at
  }
  throw new DocumentError('malformed')
}

function inflate(packed: Uint8Array, method: number, maxBytes: number): Uint8Array {
  if (method !== DEFLATED) throw new DocumentError('malformed')
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, maxBytes) })
  } catch (error) {
    const isLarge = errorCode(error) === 'ERR_BUFFER_TOO_LARGE'
    throw new DocumentError(isLarge ? 'too_large' : 'malformed')
  }
}

/**
 * Decodes the name of a file in a zip archive. The name is UTF-8 if the file's flag says so or its bytes are valid
 * UTF-8. In all other cases, each byte becomes one Latin-1 character.
 */
function nameOf(raw: Uint8Array, isUtf8: boolean): string {
  try {
    return new TextDecoder('utf-8', { fatal: !isUtf8 }).decode(raw)
  } catch {
    return Buffer.from(raw).toString('latin1')
  }
}

/** Sets the maximum number of file names that the text of an archive lists. */
const SHOWN_MAX = 2_000

/** Lists the names and sizes of the files in a zip archive. This list serves as the text of the archive. */
export function listArchive(archive: ZipArchive): DocumentText {
  const out = new TextWriter()
  const { names } = archive
  if (archive.isCut || names.length > SHOWN_MAX) out.omitted.add('truncated')
  for (const name of names.slice(0, SHOWN_MAX)) {
    if (name.endsWith('/')) continue
    out.write(`${name.replace(/\p{Cc}+/gu, ' ')}\t${archive.sizeOf(name)} bytes\n`)
  }
  return out.done()
}
