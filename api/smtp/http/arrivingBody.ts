/** Describes how a client sends the body of an HTTP request, and when the service stops waiting for it. */
export type Arrival = {
  /** Aborts when the request has lasted too long, or when its connection must make room. */
  signal: AbortSignal
  /** Holds the maximum number of milliseconds for which the client may stay silent. */
  silentMs: number
  /** Is called when the client has stayed silent for too long. The call aborts the signal. */
  onSilence: () => void
  /** Is called for each chunk of the body. */
  onChunk: () => void
}

/**
 * Yields the body of an HTTP request as it arrives. Bun closes a connection after its idle timeout although bytes of
 * the body arrive. Therefore this function measures the silence of a client, and Bun's timeout is off.
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
