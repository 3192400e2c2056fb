/** The method of a JSON-RPC message; null: it has none. */
export const methodOf = (message: unknown): unknown =>
  typeof message === 'object' && message !== null && 'method' in message ? message.method : null
