/** Starts a fake RPC node of a chain that gives the responses of a test. */
import { serve } from 'bun'

type Answer = (method: string, params: any[]) => unknown

/**
 * Starts a fake RPC node of a chain. If `answer` returns `{error}`, the node responds with this error. If it returns a
 * Response, the node sends it as the response to the whole HTTP request.
 */
export function startNode(answer: Answer) {
  const server = serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      node.requests++
      const body = await request.json()
      const messages: any[] = Array.isArray(body) ? body : [body]
      const replies: object[] = []
      for (const { id, method, params } of messages) {
        const made = await answer(method, params)
        if (made instanceof Response) return made
        const isError = typeof made === 'object' && made !== null && 'error' in made
        replies.push({ jsonrpc: '2.0', id, ...(isError ? made : { result: made ?? null }) })
      }
      return Response.json(Array.isArray(body) ? replies : replies[0])
    },
  })
  const node = {
    url: `http://127.0.0.1:${server.port}`,
    requests: 0,
    [Symbol.dispose]: () => void server.stop(true),
  }
  return node
}
