/** Starts a proxy between the workers and the devnet, which causes faults on request. */
import { serve } from 'bun'

type Fault =
  | null
  /** Makes the proxy of the chain node respond to every request with the given HTTP status. */
  | { status: number }
  /** Makes the proxy of the chain node delay every response by the given number of milliseconds. */
  | { delayMs: number }

type Message = { id: number; method: string; params: unknown[] }

export type RpcProxy = {
  url: string
  fault: Fault
  /**
   * Maps an RPC method to the error that replaces the response of the node. If `after` is set, the proxy first passes
   * the call to the node, and then responds with the error.
   */
  errors: Map<string, (params: any[]) => { code: number; message: string; after?: boolean } | null>
  /**
   * Maps an RPC method to a function that responds in place of the node. If the function returns undefined, the node
   * responds.
   */
  answers: Map<string, (params: any[]) => unknown>
  /** Maps an RPC method to a function that returns how many milliseconds the response of its whole request takes. */
  delays: Map<string, (params: any[]) => number>
  /** Maps an RPC method to a function that changes the result of the node. */
  edits: Map<string, (result: any, params: any[]) => unknown>
  /**
   * Names an RPC method whose callers never get a response. If `after` is set, the proxy still passes the call to the
   * node.
   */
  hold: { method: string; when: 'before' | 'after' } | null
  /** Counts the requests that the proxy of the chain node holds back. */
  held: number
  stop(): Promise<void>
}

export function startRpcProxy(target: string): RpcProxy {
  const forward = async (messages: Message[]): Promise<any[]> => {
    if (messages.length === 0) return []
    const response = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(messages),
    })
    const answers = await response.json()
    return Array.isArray(answers) ? answers : []
  }
  const released = Promise.withResolvers<void>()
  const server = serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = await request.json()
      const messages: Message[] = Array.isArray(body) ? body : [body]
      const { fault, hold } = proxy
      const holds = hold !== null && messages.some(({ method }) => method === hold.method)
      if (holds) {
        if (hold.when === 'after') await forward(messages)
        proxy.held++
        await released.promise
        return new Response(null, { status: 502 })
      }
      if (fault !== null && 'status' in fault) return new Response('no', { status: fault.status })
      if (fault !== null) await Bun.sleep(fault.delayMs)
      const delays = messages.map(({ method, params }) => proxy.delays.get(method)?.(params) ?? 0)
      await Bun.sleep(Math.max(0, ...delays))
      const errorOf = ({ method, params }: Message) => proxy.errors.get(method)?.(params) ?? null
      const passed = messages.filter(
        (message) => errorOf(message)?.after ?? errorOf(message) === null,
      )
      const results = new Map((await forward(passed)).map((answer) => [answer.id, answer]))
      const replies = messages.map((message) => {
        const { id, method } = message
        const error = errorOf(message)
        if (error !== null) {
          return { jsonrpc: '2.0', id, error: { code: error.code, message: error.message } }
        }
        const made = proxy.answers.get(method)?.(message.params)
        if (made !== undefined) return { jsonrpc: '2.0', id, result: made }
        const answer = results.get(id)
        const edit = proxy.edits.get(method)
        return edit && answer ? { ...answer, result: edit(answer.result, message.params) } : answer
      })
      // The chain node has either ended, or has responded to a whole batch with a single error, so the proxy sends an
      // error for the whole request.
      if (replies.includes(undefined)) return new Response('no answer', { status: 502 })
      return Response.json(Array.isArray(body) ? replies : replies[0])
    },
  })
  const proxy: RpcProxy = {
    url: `http://127.0.0.1:${server.port}`,
    fault: null,
    errors: new Map(),
    answers: new Map(),
    delays: new Map(),
    edits: new Map(),
    hold: null,
    held: 0,
    async stop() {
      released.resolve()
      await server.stop(true)
    },
  }
  return proxy
}
