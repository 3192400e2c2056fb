import { gunzipSync, inflateRawSync } from 'node:zlib'
import { errorCode } from '../../errorCode.ts'
import { ReportError } from './aggregateReport.ts'

/**
 * Sets the maximum number of bytes to which an aggregate report may unpack. The unpacked reports of the largest senders
 * have a few megabytes.
 */
const UNPACKED_MAX_BYTES = 10 * 1024 * 1024
const LIMIT = { maxOutputLength: UNPACKED_MAX_BYTES }

/**
 * Returns the text of an aggregate report. The report may be compressed with gzip, be the first file of a zip archive,
 * or be uncompressed. The function stops unpacking a zip bomb when the output reaches the size limit.
 * @throws {ReportError} if the report is empty, damaged or too large.
 */
export function unpackReport(bytes: Uint8Array): string {
  const unpacked = unpack(bytes)
  if (unpacked.length > UNPACKED_MAX_BYTES) throw new ReportError('it is too large')
  if (unpacked.length === 0) throw new ReportError('its archive is empty')
  return Buffer.from(unpacked).toString('utf8')
}

function unpack(bytes: Uint8Array): Uint8Array {
  try {
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) return gunzipSync(bytes, LIMIT)
    if (bytes[0] === 0x50 && bytes[1] === 0x4b) return firstFile(bytes)
    return bytes
  } catch (error) {
    if (error instanceof ReportError) throw error
    const isLarge = errorCode(error) === 'ERR_BUFFER_TOO_LARGE'
    throw new ReportError(isLarge ? 'it is too large' : 'its archive is damaged')
  }
}

/** Holds the offsets in the local header of a file in a zip archive (APPNOTE.TXT §4.3.7). */
const HEADER = { bytes: 30, method: 8, packedSize: 18, nameLength: 26, extraLength: 28 } as const
const [STORED, DEFLATED] = [0, 8] as const

function firstFile(archive: Uint8Array): Uint8Array {
  // A zip archive that begins with the end-of-directory record contains no file, so its text is empty.
  if (archive[2] === 0x05) return archive.subarray(0, 0)
  if (archive.length < HEADER.bytes) throw new ReportError('its archive is damaged')
  const header = new DataView(archive.buffer, archive.byteOffset, HEADER.bytes)
  const word = (at: number) => header.getUint16(at, true)
  const start = HEADER.bytes + word(HEADER.nameLength) + word(HEADER.extraLength)
  const method = word(HEADER.method)
  // The function needs no length of the compressed stream, because the stream marks its own end, and `inflateRawSync`
  // reads no byte after it.
  if (method === DEFLATED) return inflateRawSync(archive.subarray(start), LIMIT)
  if (method !== STORED) throw new ReportError('its archive is packed in a way that is not known')
  return archive.subarray(start, start + header.getUint32(HEADER.packedSize, true))
}
