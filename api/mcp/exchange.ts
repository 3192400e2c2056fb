/** Answers JSON-RPC messages with the MCP SDK that fits the MCP version of the messages. */
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ErrorCode as JsonRpcCode } from '@modelcontextprotocol/sdk/types.js'
import { isLegacyRequest } from '@modelcontextprotocol/server'
import { methodOf } from './methodOf.ts'
import { answerModern } from './modernServer.ts'
import { type Connection, createMcpServer } from './server.ts'

/** Answers the JSON-RPC message or batch of one HTTP request. Each HTTP request has its own MCP server object. */
export async function exchange(
  request: Request,
  body: object,
  connection: Connection,
): Promise<Response> {
  if (!(await isLegacyRequest(request, body))) return await answerModern(request, body, connection)
  const fault = 'id' in body ? paramsFault(body) : null
  if (fault !== null) return invalidParams(body, fault)
  const mcp = createMcpServer(connection)
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  // The type cast is needed under exactOptionalPropertyTypes, because the transport class of the MCP SDK does not
  // satisfy the SDK's own interface.
  await mcp.connect(transport as Transport)
  try {
    const response = await transport.handleRequest(request, { parsedBody: body })
    return Array.isArray(body) && response.status === 200 ? await asList(response) : response
  } finally {
    await mcp.close()
  }
}

/**
 * Puts the answer to a batch into an array (JSON-RPC 2.0 §6). The function is needed, because the MCP SDK returns the
 * answer to a batch with a single call without an array.
 */
async function asList(response: Response): Promise<Response> {
  const text = await response.text()
  return new Response(text.startsWith('[') ? text : `[${text}]`, response)
}

/**
 * Returns the rule that the parameters of a request break. Null means that the MCP SDK may read them. This check is
 * needed, because the MCP SDK would return the code of an internal error, and the words of its schema library.
 */
function paramsFault(body: object): string | null {
  const { params } = body as { params?: Record<string, unknown> | null }
  const method = methodOf(body)
  if (method === 'initialize' && typeof params?.protocolVersion !== 'string') {
    return 'params.protocolVersion must be a text, such as 2025-11-25'
  }
  if (method !== 'tools/call') return null
  if (typeof params?.name !== 'string') return 'params.name must be the name of a tool'
  const { arguments: args = {} } = params
  const isObject = typeof args === 'object' && args !== null && !Array.isArray(args)
  return isObject ? null : 'params.arguments must be a JSON object'
}

function invalidParams(body: object, message: string): Response {
  const id = 'id' in body ? body.id : null
  return Response.json({ jsonrpc: '2.0', id, error: { code: JsonRpcCode.InvalidParams, message } })
}
