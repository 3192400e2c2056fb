import { Gunzip, Unzip, UnzipInflate } from 'fflate'
import { ReportError } from './aggregateReport.ts'

/** Reports of the largest senders have some megabytes. */
const UNPACKED_MAX_BYTES = 10 * 1024 * 1024
/** A piece inflates to at most a thousand times its size, before anybody can count. */
const PIECE_BYTES = 1024

/**
 * The text of a report in gzip, in the first file of a zip archive, or as it is. It stops inside of a bomb.
 * @throws {ReportError}
 */
export function unpackReport(bytes: Uint8Array): string {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return text(inflated(bytes, openGzip))
  if (bytes[0] === 0x50 && bytes[1] === 0x4b) return text(inflated(bytes, openZip))
  if (bytes.length > UNPACKED_MAX_BYTES) throw new ReportError('it is too large')
  return text([bytes])
}

const text = (chunks: readonly Uint8Array[]): string => Buffer.concat(chunks).toString('utf8')

type Take = (chunk: Uint8Array) => void
/** Opens an archive. `isEnded` tells when the rest of it is nobody's. */
type Open = (take: Take) => { push(piece: Uint8Array, last: boolean): void; isEnded(): boolean }

function inflated(bytes: Uint8Array, open: Open): Uint8Array[] {
  const chunks: Uint8Array[] = []
  let size = 0
  const archive = open((chunk) => {
    size += chunk.length
    if (size > UNPACKED_MAX_BYTES) throw new ReportError('it is too large')
    chunks.push(chunk)
  })
  try {
    for (let at = 0; at < bytes.length && !archive.isEnded(); at += PIECE_BYTES) {
      const end = Math.min(bytes.length, at + PIECE_BYTES)
      archive.push(bytes.subarray(at, end), end === bytes.length)
    }
  } catch (error) {
    throw error instanceof ReportError ? error : new ReportError('its archive is damaged')
  }
  if (size === 0) throw new ReportError('its archive is empty')
  return chunks
}

const openGzip: Open = (take) => {
  const gunzip = new Gunzip(take)
  return { push: (piece, last) => gunzip.push(piece, last), isEnded: () => false }
}

const openZip: Open = (take) => {
  let [isTaken, isEnded] = [false, false]
  const unzip = new Unzip((file) => {
    if (isTaken) return
    isTaken = true
    file.ondata = (error, chunk, last) => {
      if (error !== null) throw error
      take(chunk)
      isEnded = last
    }
    file.start()
  })
  unzip.register(UnzipInflate)
  return { push: (piece, last) => unzip.push(piece, last), isEnded: () => isEnded }
}
