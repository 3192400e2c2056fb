/**
 * Starts an MCP server over the streamable HTTP transport. The test decides its response to each tool call.
 */

type Json = Record<string, unknown>
/** Describes one JSON-RPC call of a tool, as the server received the call. */
type ToolCall = { name: string; arguments: Json; _meta?: Json }
/** Describes the response to a tool call: either members of the JSON-RPC response, or a whole HTTP response. */
type ToolAnswer = { result: Json } | { error: Json } | Response

export type McpSeller = AsyncDisposable & {
  url: string
  host: string
  calls: ToolCall[]
  /** Lists the HTTP requests that the fake MCP server received, each as its method and its JSON-RPC method. */
  requests: string[]
  /** Lists the URL paths of the HTTP requests that the fake MCP server received. */
  paths: string[]
  headers: Headers[]
  call: (call: ToolCall) => ToolAnswer | Promise<ToolAnswer>
  initialize: () => ToolAnswer
  /** Makes the response to an MCP notification, and the response to the request that ends the MCP session. */
  notified: () => Response | Promise<Response>
}

const SESSION = { 'mcp-session-id': 'session-1' }

export function startMcpSeller(): McpSeller {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const text = await request.text()
      const message = text === '' ? {} : JSON.parse(text)
      seller.requests.push([request.method, message.method].filter(Boolean).join(' '))
      seller.paths.push(new URL(request.url).pathname)
      seller.headers.push(request.headers)
      const told = (answer: ToolAnswer) =>
        answer instanceof Response
          ? answer
          : Response.json({ jsonrpc: '2.0', id: message.id, ...answer }, { headers: SESSION })
      if (message.method === 'initialize') return told(seller.initialize())
      if (message.method !== 'tools/call') return seller.notified()
      seller.calls.push(message.params)
      return told(await seller.call(message.params))
    },
  })
  const seller: McpSeller = {
    url: `http://127.0.0.1:${server.port}/mcp`,
    host: `127.0.0.1:${server.port}`,
    calls: [],
    requests: [],
    paths: [],
    headers: [],
    call: () => ({ result: { content: [] } }),
    initialize: () => ({
      result: {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'seller', version: '1' },
      },
    }),
    notified: () => new Response(null, { status: 202 }),
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
  return seller
}
