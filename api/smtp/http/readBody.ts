import { type FairTurns, NoTurnError } from '../../../shared/fair/fairTurns.ts'
import { SmtpReply, TOO_LARGE } from '../acceptance.ts'

/**
 * Reads an HTTP body of at most `maxBytes`. @throws {SmtpReply} if the HTTP body is longer, or takes longer than
 * `maxMs` milliseconds.
 */
export async function readBody(
  body: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array> | null,
  maxBytes: number,
  maxMs = Number.POSITIVE_INFINITY,
): Promise<Buffer> {
  const endsAtMs = performance.now() + maxMs
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) throw new SmtpReply(552, TOO_LARGE)
    if (performance.now() > endsAtMs) throw new SmtpReply(451, '4.4.2 The body arrives too slowly')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const SLICE_BYTES = 1024 * 1024

/** Returns the bytes of a message in slices, as an SMTP connection would deliver them. */
export async function* slices(bytes: Buffer): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES)
}

/** Sets how many milliseconds a request waits for its turn. The mail service sends the mail again after a 503. */
const TURN_MAX_MS = 30_000

/** Waits for the turn of a large mail. @throws {SmtpReply} if the wait takes too long. */
export async function inTurn(turns: FairTurns, sharer: string): Promise<() => void> {
  try {
    return await turns.enter(sharer, TURN_MAX_MS)
  } catch (error) {
    if (!(error instanceof NoTurnError)) throw error
    throw new SmtpReply(451, '4.3.2 Too many large mails arrive at once')
  }
}
