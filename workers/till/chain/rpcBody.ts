/** Reads the response of a chain node with a limit of its size. A node may lie, and anybody can fill a receipt. */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'

/**
 * Limits the bytes of a response, also after its decompression. A receipt with all events that one transaction can log
 * has 31 MB.
 */
const BODY_BYTES_MAX = 64 * 1024 * 1024

/** Reports that a response is larger than the service reads. */
export class BodyTooLarge extends Error {}

/**
 * Lists the fetch options of a response that {@link readJson} reads. The runtime must not decompress the response,
 * because it knows no limit.
 */
export const UNREAD = { decompress: false } as const

/**
 * Reads the JSON of a response.
 * @throws {BodyTooLarge} if the response has more than BODY_BYTES_MAX bytes.
 * @throws {Error} if the response is not JSON.
 */
export async function readJson(response: Response): Promise<unknown> {
  const sent = await readBytes(response)
  const coding = response.headers.get('content-encoding')?.toLowerCase() ?? 'identity'
  if (coding === 'identity') return JSON.parse(sent.toString())
  if (coding !== 'gzip') throw new Error(`the coding ${coding} was not asked for`)
  return JSON.parse((await unzipped(sent)).toString())
}

async function readBytes(response: Response): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of response.body ?? []) {
    length += part.length
    if (length > BODY_BYTES_MAX) throw new BodyTooLarge()
    parts.push(part)
  }
  return Buffer.concat(parts)
}

async function unzipped(bytes: Buffer): Promise<Buffer> {
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: BODY_BYTES_MAX })
  } catch (error) {
    const isTooLarge = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
    throw isTooLarge ? new BodyTooLarge() : error
  }
}
