/**
 * Sends JSON-RPC requests over HTTP. The client throws an error for each failure of the HTTP transport, whereas `batch`
 * returns each error of the RPC node as a value.
 */
import { z } from 'zod'
import { storableLine } from '../../../shared/storable.ts'
import { BodyTooLarge, readJson, UNREAD } from './rpcBody.ts'

/**
 * Reports that the RPC node is down, slow or rate-limited, or that its reply is malformed. A fault of the RPC node says
 * nothing about whether a payment is valid.
 */
export class RpcTrouble extends Error {
  override readonly name = 'RpcTrouble'
}

/** Reports that the RPC node did not respond in time, although it may still respond to a request with fewer calls. */
export class RpcTimeout extends RpcTrouble {}

const REST_SECONDS = 1
const REST_MAX_SECONDS = 60

/** Reports that the RPC node limits the requests of this service (HTTP 429). */
class RpcRest extends RpcTrouble {
  readonly seconds: number
  constructor(retryAfter: string | null) {
    super('HTTP 429')
    const asked = secondsOf(retryAfter ?? '')
    this.seconds = Number.isFinite(asked)
      ? Math.min(REST_MAX_SECONDS, Math.max(REST_SECONDS, asked))
      : REST_SECONDS
  }
}

/** Reads the header Retry-After, which holds a number of seconds or a date (RFC 9110 §10.2.3). */
const secondsOf = (retryAfter: string): number =>
  /^\d+$/.test(retryAfter) ? Number(retryAfter) : (Date.parse(retryAfter) - Date.now()) / 1000

export type RpcCall = { method: string; params: readonly unknown[] }

/** Holds the response to one JSON-RPC call: a result, or the error that the RPC node returned. */
export type RpcAnswer =
  | { ok: true; result: unknown }
  | { ok: false; code: number; message: string; data: unknown }

export type Rpc = {
  /**
   * Makes one JSON-RPC call to the RPC node.
   * @throws {RpcTrouble} if no reply comes, or if the RPC node replies with an error.
   */
  call(method: string, params: readonly unknown[]): Promise<unknown>
  /**
   * Makes many JSON-RPC calls in HTTP requests that follow one another. One HTTP request contains up to BATCH_MAX
   * calls, and fewer if the calls are large. Returns the responses in the order of the calls.
   * @throws {RpcTrouble} if an HTTP request gets no reply.
   */
  batch(calls: readonly RpcCall[]): Promise<RpcAnswer[]>
}

const TIMEOUT_MS = 5_000
/** Limits how many calls one JSON-RPC batch contains, because public chain nodes refuse larger batches. */
const BATCH_MAX = 50
/**
 * Limits how many characters the parameters in one JSON-RPC request have. Without this limit, the simulations of fifty
 * payment groups (payments that share one transaction) would take 3.6 MB together.
 */
const BATCH_CHARS_MAX = 1_000_000

const answerSchema = z.object({
  id: z.number(),
  result: z.unknown().optional(),
  error: z
    .object({ code: z.number(), message: z.string(), data: z.unknown().optional() })
    .optional(),
})

/** Creates a JSON-RPC client for one chain node. */
export function createRpc({
  url,
  timeoutMs = TIMEOUT_MS,
}: {
  url: string
  timeoutMs?: number
}): Rpc {
  /**
   * Holds the time before which the service sends no further request to the RPC node. A node that responds with 429
   * names this time.
   */
  let restUntilMs = 0
  const send = async (calls: readonly RpcCall[]): Promise<RpcAnswer[]> => {
    const restS = Math.ceil((restUntilMs - performance.now()) / 1000)
    if (restS > 0) throw new RpcTrouble(`HTTP 429: it wants to rest for ${restS} s more`)
    try {
      return await request(url, calls, timeoutMs)
    } catch (error) {
      if (error instanceof RpcRest) restUntilMs = performance.now() + error.seconds * 1000
      throw error
    }
  }
  const batch = async (calls: readonly RpcCall[]): Promise<RpcAnswer[]> => {
    const answers: RpcAnswer[] = []
    for (const some of requestsOf(calls)) answers.push(...(await send(some)))
    return answers
  }
  return {
    batch,
    async call(method, params) {
      const [answer] = await send([{ method, params }])
      if (answer?.ok) return answer.result
      throw new RpcTrouble(`${method}: ${answer?.message ?? 'no answer'}`)
    },
  }
}

function requestsOf(calls: readonly RpcCall[]): RpcCall[][] {
  const requests: RpcCall[][] = []
  let chars = 0
  for (const call of calls) {
    const length = JSON.stringify(call.params).length
    const last = requests.at(-1)
    chars += length
    if (last !== undefined && last.length < BATCH_MAX && chars <= BATCH_CHARS_MAX) last.push(call)
    else {
      requests.push([call])
      chars = length
    }
  }
  return requests
}

async function request(
  url: string,
  calls: readonly RpcCall[],
  timeoutMs: number,
): Promise<RpcAnswer[]> {
  const messages = calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }))
  let body: unknown
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'accept-encoding': 'gzip' },
      body: JSON.stringify(messages.length === 1 ? messages[0] : messages),
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'error',
      ...UNREAD,
      // The option `proxy` prevents Bun from sending loopback requests through HTTP_PROXY.
      ...(isLoopback(url) ? { proxy: false } : {}),
    } as unknown as RequestInit)
    if (response.status === 429) throw new RpcRest(response.headers.get('retry-after'))
    if (!response.ok) throw new RpcTrouble(`HTTP ${response.status}`)
    body = await readJson(response)
  } catch (error) {
    if (error instanceof RpcTrouble) throw error
    if (error instanceof BodyTooLarge) throw new RpcTrouble('the answer is too large: HTTP 413')
    // The error leaves out the cause of the network failure, because the cause may contain the URL with an API key.
    throw error instanceof Error && error.name === 'TimeoutError'
      ? new RpcTimeout('timed out')
      : new RpcTrouble('not reachable')
  }
  const parsed = z.array(answerSchema).safeParse(Array.isArray(body) ? body : [body])
  if (!parsed.success) throw new RpcTrouble('the answer is not JSON-RPC')
  const byId = new Map(parsed.data.map((answer) => [answer.id, answer]))
  return calls.map((call, id) => {
    const answer = byId.get(id)
    if (answer === undefined) throw new RpcTrouble(`${call.method}: no answer`)
    const { error } = answer
    if (error === undefined) return { ok: true, result: answer.result ?? null }
    return {
      ok: false,
      code: error.code,
      message: storableLine(error.message, MESSAGE_CHARS_MAX),
      data: error.data,
    }
  })
}

/** Limits the characters of an error text. Payments store this text. */
const MESSAGE_CHARS_MAX = 1_000

const isLoopback = (url: string): boolean =>
  ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname)
