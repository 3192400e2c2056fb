/** Returns the method of a JSON-RPC message. Returns `null` if the message has no method. */
export const methodOf = (message: unknown): unknown =>
  typeof message === 'object' && message !== null && 'method' in message ? message.method : null
