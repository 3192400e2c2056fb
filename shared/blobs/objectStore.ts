import type { Logger } from 'pino'
import type { BlobStoreSettings } from '../config/blobStoreSettings.ts'
import { createOutage } from '../process/outage.ts'

/** Gives access to a bucket of an S3-compatible store. */
export type ObjectStore = {
  /**
   * Writes an object to the bucket. A second write of the same bytes to the same object changes nothing. @throws
   * {BlobsAwayError} if the object store is unavailable. @throws {ObjectTooLargeError} if the object is too large for
   * it.
   */
  put(name: string, bytes: Uint8Array): Promise<void>
  /**
   * Reads an object of at most `maxBytes` bytes. @returns null if the object does not exist. @throws {BlobsAwayError}
   * if the object store is unavailable.
   */
  get(name: string, maxBytes: number): Promise<Buffer | null>
  /**
   * Removes an object. The removal of a missing object causes no error. @throws {BlobsAwayError} if the object store is
   * unavailable. @throws {RemovalRefusedError} if it refuses the removal.
   */
  remove(name: string): Promise<void>
}

/**
 * Reports that the object store does not respond, or refuses the request because the bucket is missing or the
 * credentials are wrong. No data is lost while the object store is unavailable.
 */
export class BlobsAwayError extends Error {}

/**
 * Reports that the object store refuses to remove an object, for example because the credentials may not delete. The
 * object store still serves all other requests.
 */
class RemovalRefusedError extends Error {}

/**
 * Reports that the object store, or a proxy in front of it, refuses an object because of its size. The object store
 * still serves all other requests.
 */
export class ObjectTooLargeError extends Error {}

type StoreOperation = 'put' | 'get' | 'remove'
/**
 * Describes a function that receives the operation, the outcome and the duration of each request to the object store.
 */
export type ObserveStore = (request: {
  operation: StoreOperation
  outcome: 'done' | 'refused' | 'away'
  seconds: number
}) => void

/**
 * Sets the maximum duration of a request to the object store, in milliseconds. The service adds time for the transfer
 * of the object's bytes.
 */
const DEADLINE_MS = 10_000
const BYTES_PER_MS = 256
/**
 * Sets the time between two tests of a failed object store. After a failure, one request at a time tests the object
 * store, and all other requests fail at once. Otherwise an object store that does not respond would block all jobs of
 * the service.
 */
const PROBE_EVERY_MS = 1_000
const SIGNATURE_S = 300
/** Sets how many bytes of an error response the service reads to find the object store's error code. */
const ERROR_BYTES_MAX = 4_096
const METHODS = { put: 'PUT', get: 'GET', remove: 'DELETE' } as const

type Answer = { status: number; body: Buffer }

/**
 * Opens a bucket. Bun's S3 client signs the requests to the object store.
 * @param request sends the requests to the object store. The caller passes the `fetch` of the process as `request`,
 * because that `fetch` accepts a time limit for each request.
 */
export function openObjectStore(
  { prefix, virtualHosted, ...settings }: BlobStoreSettings,
  request: typeof fetch,
  log: Pick<Logger, 'warn'>,
  {
    observe = () => {},
    deadlineMs = DEADLINE_MS,
  }: { observe?: ObserveStore; deadlineMs?: number } = {},
): ObjectStore {
  const client = new Bun.S3Client({ ...settings, virtualHostedStyle: virtualHosted })
  const outage = createOutage('the object store')
  let away: { reason: string; nextProbeMs: number } | null = null

  const send = async (
    operation: StoreOperation,
    name: string,
    bytes: number,
    body?: Uint8Array,
  ): Promise<Answer> => {
    const method = METHODS[operation]
    const response = await request(
      client.presign(`${prefix}${name}`, { method, expiresIn: SIGNATURE_S }),
      {
        method,
        ...(body === undefined ? {} : { body }),
        redirect: 'manual',
        signal: AbortSignal.timeout(deadlineMs + bytes / BYTES_PER_MS),
      },
    )
    const most = response.status === 200 ? bytes : ERROR_BYTES_MAX
    return { status: response.status, body: await readAtMost(response, most) }
  }

  /**
   * Sends one request to the object store. If the request fails, the function sends it once more, because the store may
   * only have closed a kept-alive connection.
   */
  const use = async (
    operation: StoreOperation,
    name: string,
    bytes: number,
    body?: Uint8Array,
  ): Promise<Answer> => {
    const startMs = performance.now()
    if (away !== null && startMs < away.nextProbeMs) throw new BlobsAwayError(away.reason)
    if (away !== null) away.nextProbeMs = startMs + deadlineMs
    const tries = away === null ? 2 : 1
    let reason = ''
    for (let n = 0; n < tries; n++) {
      try {
        const answer = await send(operation, name, bytes, body)
        const refused = refusal(operation, answer)
        if (refused === null) {
          away = null
          outage.answered()
          observe({ operation, outcome: 'done', seconds: (performance.now() - startMs) / 1000 })
          return answer
        }
        const own = ownRefusal(operation, answer.status, refused)
        if (own !== null) {
          if (away !== null) away.nextProbeMs = performance.now() + PROBE_EVERY_MS
          observe({ operation, outcome: 'refused', seconds: (performance.now() - startMs) / 1000 })
          throw own
        }
        reason = refused
      } catch (error) {
        if (OWN_ERRORS.some((own) => error instanceof own)) throw error
        // The log must not contain Bun's error object, because the error object contains the signed URL of the object.
        reason = (error as { code?: string }).code ?? (error as Error).name
        // The function does not repeat a request after a timeout, because the caller would then wait twice as long.
        if ((error as Error).name === 'TimeoutError') break
      }
    }
    away = { reason, nextProbeMs: performance.now() + PROBE_EVERY_MS }
    outage.missed((fields, message) => log.warn(fields, message), reason)
    observe({ operation, outcome: 'away', seconds: (performance.now() - startMs) / 1000 })
    throw new BlobsAwayError(`the object store is away: ${reason}`)
  }

  return {
    async put(name, bytes) {
      await use('put', name, bytes.length, bytes)
    },
    async get(name, maxBytes) {
      const { status, body } = await use('get', name, maxBytes)
      return status === 200 ? body : null
    },
    async remove(name) {
      await use('remove', name, 0)
    },
  }
}

/** Opens the bucket that the settings name. @returns null if the settings name no bucket. */
export const openStoreOf = (
  settings: BlobStoreSettings | null,
  request: typeof fetch,
  log: Pick<Logger, 'warn'>,
  options: { observe?: ObserveStore } = {},
): ObjectStore | null =>
  settings === null ? null : openObjectStore(settings, request, log, options)

/**
 * Tells why a response of the object store counts as an outage, for example because the bucket is missing. @returns
 * null if the response is a normal result of the operation.
 */
function refusal(operation: StoreOperation, { status, body }: Answer): string | null {
  if (status === 200 || (operation === 'remove' && status === 204)) return null
  const code = /<Code>(\w{1,64})<\/Code>/.exec(body.toString('latin1'))?.[1] ?? ''
  // A proxy in front of the object store may also answer 404. Therefore a 404 means a missing object only if the
  // response holds the object store's own error code.
  if (status === 404 && operation !== 'put' && code === 'NoSuchKey') return null
  return `${status} ${code}`.trim()
}

/**
 * Returns the error for a refusal that concerns only this object. @returns null if the refusal concerns every object,
 * for example because the credentials may not write. Such a refusal counts as an outage of the object store.
 */
function ownRefusal(operation: StoreOperation, status: number, refused: string): Error | null {
  if (operation === 'remove' && isFinal(status)) {
    return new RemovalRefusedError(`the object store refuses to remove an object: ${refused}`)
  }
  if (operation === 'put' && (status === 413 || refused === '400 EntityTooLarge')) {
    return new ObjectTooLargeError(`the object store refuses an object of this size: ${refused}`)
  }
  return null
}

/**
 * Tells whether an error response concerns only its own request. After the codes 404, 408 and 429, the whole object
 * store, or a proxy in front of it, cannot answer now, so the result is false.
 */
const isFinal = (status: number): boolean =>
  status >= 400 && status < 500 && ![404, 408, 429].includes(status)

/**
 * Reports that an object in the object store is longer than its database row states. Only another program can have
 * written such an object.
 */
export class TooLongError extends Error {}

/** Lists the errors about a single object. After such an error, the object store still counts as reachable. */
const OWN_ERRORS = [TooLongError, RemovalRefusedError, ObjectTooLargeError]

async function readAtMost(response: Response, maxBytes: number): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.length
    if (size > maxBytes) {
      if (response.status === 200) throw new TooLongError(`an object has over ${maxBytes} bytes`)
      break
    }
    parts.push(part)
  }
  return Buffer.concat(parts)
}
