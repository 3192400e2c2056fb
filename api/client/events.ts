import type { Message } from './calls/messages.ts'
import { ConnectionError } from './errors.ts'
import { type CallOptions, type Http, pause } from './http.ts'

/** Describes an event in the event stream of the project. */
export type PurserEvent = {
  /** Holds the id of the event. Pass it as `lastEventId` to receive the events after this event. */
  id: string
  /**
   * Holds the type of the event. The event `stream.gap` says that the client missed events. Either they are deleted, or
   * a restored backup lacks the client's last known event. The data of `stream.gap` are empty.
   */
  type:
    | 'message.received'
    | 'message.code'
    | 'message.invite'
    | 'attachment.read'
    | 'message.held'
    | 'message.rejected'
    | 'message.sent'
    | 'message.failed'
    | 'message.bounced'
    | 'message.complained'
    | 'payment.settled'
    | 'payment.failed'
    | 'payment.refunded'
    | 'vault.used'
    | 'purse.paid'
    | 'purse.refunded'
    | 'purse.refused'
    | 'purse.asked'
    | 'purse.warned'
    | 'purse.low'
    | 'stream.gap'
  createdAt: string
  data: MessageEvent & PaymentEvent & UseEvent & PurseEvent
}

/** Describes the data of the events purse.* and payment.refunded (docs/contract.md §7). */
type PurseEvent = {
  purchaseId?: string
  host?: string
  path?: string
  payTo?: string | null
  reason?: string | null
  mandateId?: string
  bound?: 'hour' | 'day' | 'month' | 'total'
  percent?: 80 | 95
  usedUsdcRaw?: string
  limitUsdcRaw?: string
  address?: string
  balanceUsdcRaw?: string
  lowUsdcRaw?: string
  refundId?: string
  refundOf?: string
}

type MessageEvent = Partial<
  Pick<Message, 'messageId' | 'threadId' | 'inboxId' | 'to' | 'subject' | 'labels'>
> & { from?: string[] }
type PaymentEvent = Partial<{
  paymentId: string
  status: 'settled' | 'failed'
  amountUsdcRaw: string
  network: string
  payerAddress: string
  resourceUrl: string
  /** Tells who named the paid resource. The value `payer` means that only the payer named it, and not the seller. */
  resourceSource: 'seller' | 'payer'
  paymentIdentifier: string | null
  txHash: string | null
  failureReason: string | null
}>

/**
 * Describes the event that reports a request with a secret of the vault. `vault.getUse` returns the response of the
 * called host.
 */
type UseEvent = Partial<{
  useId: string
  name: string
  state: 'answered' | 'failed' | 'unknown'
  method: string
  host: string
  path: string
  statusCode: number | null
}>

export type EventsQuery = {
  /**
   * Lists the types of events that the client wants to receive. By default the client receives all event types that the
   * scopes of its API key allow.
   */
  types?: readonly Exclude<PurserEvent['type'], 'stream.gap'>[] | undefined
  /** Holds the id of the last event that the client knows. Without this id, the client receives only new events. */
  lastEventId?: string | undefined
}

const RETRY_MS = 2_000
/**
 * Limits how long an event stream may be silent before the client reconnects. The limit is three keep-alive intervals
 * of the service, which are 15 s each.
 */
const SILENCE_MAX_MS = 45_000

/**
 * Follows the events of the project until the iteration ends. After a broken connection, the iteration continues after
 * the last received event, and neither skips nor repeats an event.
 * @throws {PurserError} if the service refuses the API key or the query. If the caller aborts the signal, the iteration
 * throws the signal's abort reason.
 */
export async function* followEvents(
  http: Http,
  query: EventsQuery,
  { signal }: Pick<CallOptions, 'signal'> = {},
): AsyncGenerator<PurserEvent, void, undefined> {
  let lastEventId = query.lastEventId
  for (;;) {
    const ended = new AbortController()
    const abort = () => ended.abort(signal?.reason)
    signal?.addEventListener('abort', abort)
    if (signal?.aborted) abort()
    let silence: ReturnType<typeof setTimeout> | undefined
    const onData = () => {
      clearTimeout(silence)
      silence = setTimeout(() => ended.abort(), SILENCE_MAX_MS)
    }
    try {
      onData()
      const stream = await http.stream(
        'getEvents',
        { query: { types: query.types?.join(','), lastEventId } },
        ended.signal,
      )
      for await (const { id, data, event } of readEvents(stream, onData)) {
        if (id !== '') lastEventId = id
        if (event === 'stream.gap') yield gap(lastEventId ?? '')
        else if (data !== '') yield { id, ...(JSON.parse(data) as Omit<PurserEvent, 'id'>) }
      }
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (!http.isTransient(error)) throw error
    } finally {
      clearTimeout(silence)
      signal?.removeEventListener('abort', abort)
      ended.abort()
    }
    await pause(RETRY_MS * (0.5 + Math.random() / 2), signal ?? new AbortController().signal)
    if (signal?.aborted) throw signal.reason
  }
}

const gap = (id: string): PurserEvent => ({
  id,
  type: 'stream.gap',
  createdAt: new Date().toISOString(),
  data: {},
})

/** Parses the subset of server-sent events (WHATWG HTML §9.2.6) that the service sends. */
async function* readEvents(
  stream: ReadableStream<Uint8Array>,
  onData: () => void,
): AsyncGenerator<{ id: string; event: string; data: string }> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { value, done } = await reader.read().catch((cause: unknown) => {
      throw new ConnectionError('The stream broke off', { cause })
    })
    if (done) return
    onData()
    text += decoder.decode(value, { stream: true })
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const fields = { id: '', event: '', data: '' }
      for (const line of text.slice(0, end).split('\n')) {
        // U+2028 and U+2029 end no line of an event stream. Therefore the dot in the pattern must match them, too.
        const [, name, field = ''] = /^(id|event|data): ?(.*)$/s.exec(line) ?? []
        if (name !== undefined) fields[name as keyof typeof fields] = field
      }
      text = text.slice(end + 2)
      yield fields
    }
  }
}
