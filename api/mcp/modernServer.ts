/**
 * Serves MCP 2026-07-28, in which each request is independent. The `_meta` and the headers of each request name the MCP
 * version and the client. The method `server/discover` replaces `initialize`.
 */
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { afterOwner, type HeldCall, heldCalls, linkForOwner } from './ownerLink.ts'
import { type Connection, callTool, instructionsFor, listedTools, serverInfo } from './server.ts'

/**
 * Lets a client cache the tool list for only one minute, because the owner can change the scopes of an app at any time.
 */
const FOR_A_MINUTE = { ttlMs: 60_000, cacheScope: 'private' } as const

/**
 * Maps the caller record of the MCP library to this service's record of the same request. The map is needed, because
 * the library passes only its own record to a tool.
 */
const connections = new WeakMap<object, Connection>()

const { fetch: serve } = createMcpHandler(
  ({ authInfo }) => {
    const connection = authInfo === undefined ? undefined : connections.get(authInfo)
    if (connection === undefined) throw new Error('a request came without its caller')
    const mcp = new Server(serverInfo(connection), {
      capabilities: { tools: {} },
      instructions: instructionsFor(connection),
      requestState: { verify: heldCalls(connection).verify },
      cacheHints: { 'tools/list': FOR_A_MINUTE, 'server/discover': FOR_A_MINUTE },
    })
    mcp.setRequestHandler('tools/list', () => ({ tools: listedTools(connection) }))
    mcp.setRequestHandler('tools/call', async ({ params }, context) => {
      const { name, arguments: args = {} } = params
      const held = context.mcpReq.requestState<HeldCall>()
      if (held !== undefined) return await afterOwner(connection, { name, args, held })
      const result = await callTool(connection, name, args, context.mcpReq.signal)
      // The service has already accepted the mail. If the code cannot make the link for the owner, the caller therefore
      // still gets the tool's result. After an error, the caller might send the mail again.
      const link = await linkForOwner(connection, { name, args, result, context }).catch(
        (err: unknown) => {
          connection.services.log.error({ err }, 'no link for the owner')
          return null
        },
      )
      return link ?? result
    })
    return mcp
  },
  // This handler rejects all revisions of MCP before 2026-07-28. A separate MCP server (server.ts) handles them.
  { legacy: 'reject' },
)

/**
 * Answers one HTTP request of an MCP 2026-07-28 client. If the `_meta` or the headers of the request are wrong, the
 * response names the error.
 */
export async function answerModern(
  request: Request,
  body: object,
  connection: Connection,
): Promise<Response> {
  if ('method' in body && body.method === LISTEN) return notFound('id' in body ? body.id : null)
  const authInfo = { token: '', clientId: '', scopes: [] }
  connections.set(authInfo, connection)
  return await serve(request, { parsedBody: body, authInfo })
}

/**
 * Holds the MCP method with which a client opens a stream of changes of the tool list. The service refuses it. The tool
 * list never changes during a connection, so the stream would only occupy a connection.
 */
const LISTEN = 'subscriptions/listen'

const notFound = (id: unknown): Response =>
  Response.json(
    { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } },
    { status: 404 },
  )
