/** Describes how a client sends the body of an HTTP request, and when the service stops waiting for the body. */
export type Arrival = {
  /**
   * Aborts when the HTTP request has lasted too long, or when the listener ends its connection to make room for a new
   * one.
   */
  signal: AbortSignal
  /** Holds the maximum number of milliseconds for which the client may stay silent. */
  silentMs: number
  /** The service calls this function, which aborts the signal, when the client has stayed silent for too long. */
  onSilence: () => void
  /** The service calls this function for each chunk of the body. */
  onChunk: () => void
}

/**
 * Yields the chunks of an HTTP request's body as they arrive. Bun's own idle timeout would close the connection even
 * while bytes arrive. Therefore Bun's timeout is off, and this function measures how long the client is silent.
 * @throws the reason of the signal as soon as the signal aborts.
 */
export async function* arrivingBody(
  body: ReadableStream<Uint8Array> | null,
  { signal, silentMs, onSilence, onChunk }: Arrival,
): AsyncGenerator<Uint8Array> {
  if (body === null) return
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  aborted.catch(() => {})
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort)
  const reader = body.getReader()
  try {
    for (;;) {
      signal.throwIfAborted()
      const timer = setTimeout(onSilence, silentMs)
      const { done, value } = await Promise.race([reader.read(), aborted]).finally(() =>
        clearTimeout(timer),
      )
      if (done) return
      onChunk()
      yield value
    }
  } finally {
    signal.removeEventListener('abort', abort)
    void reader.cancel().catch(() => {})
  }
}
