import { SmtpReply, TOO_LARGE } from '../acceptance.ts'

/** Reads an HTTP body of at most `maxBytes`. @throws {SmtpReply} if the HTTP body is longer. */
export async function readBody(
  body: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) throw new SmtpReply(552, TOO_LARGE)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const SLICE_BYTES = 1024 * 1024

/** Returns the bytes of a message in slices, as an SMTP connection would deliver them. */
export async function* slices(bytes: Buffer): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES)
}
