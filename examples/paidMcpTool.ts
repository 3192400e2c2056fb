/**
 * Runs an MCP server whose tool costs 0.01 USDC a call. Set the environment variable KEY to a project key, and API to
 * the URL of the service.
 */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { Purser } from 'purser/client'
import { requirePayment } from 'purser/client/mcp'
import { z } from 'zod'

const { KEY = '', API = 'http://127.0.0.1:3000', PORT = '4003' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })

async function answer(request: Request): Promise<Response> {
  const mcp = new McpServer({ name: 'weather', version: '1' })
  const inputSchema = { city: z.string() }
  const weather = ({ city }: { city: string }) => ({
    content: [{ type: 'text' as const, text: `The weather in ${city} is fine.` }],
  })
  mcp.registerTool(
    'weather',
    { description: 'The weather of a city, for 0.01 USDC', inputSchema },
    requirePayment({ purser, amount: '0.01', resource }, weather),
  )
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await mcp.connect(transport)
  return transport.handleRequest(request)
}

const server = Bun.serve({ port: Number(PORT), hostname: '127.0.0.1', fetch: answer })
// This URL, which the seller registers, stands for one MCP tool.
const resource = `http://127.0.0.1:${server.port}/mcp/weather`
await purser.sellers.put({ urlPattern: resource, priceUsdc: '0.01' })
console.log(`the tool is at ${resource}`)
