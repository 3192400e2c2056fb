import { createHmac } from 'node:crypto'

/** Computes one-time codes as RFC 4226 and RFC 6238 describe, for comparison with a library. */
export function totpByTheBook(
  key: Uint8Array,
  nowMs: number,
  { algorithm = 'sha1', digits = 6, periodS = 30 } = {},
): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(nowMs / 1000 / periodS)))
  const mac = createHmac(algorithm, key).update(counter).digest()
  const offset = mac[mac.length - 1]! & 15
  const value = (mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits
  return String(value).padStart(digits, '0')
}
