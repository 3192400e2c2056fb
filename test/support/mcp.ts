import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'

/** The official client, connected with a key. It checks every answer against the tool's output schema. */
export async function connectMcp(
  url: string,
  key: string,
  path = '/mcp',
): Promise<Client & AsyncDisposable> {
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL(path, url), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  })
  await client.connect(transport as Transport)
  await client.listTools()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() })
}

/** The data of a call that must succeed. */
export async function callTool(client: Client, name: string, args: object = {}): Promise<any> {
  const result = await client.callTool({ name, arguments: args as Record<string, unknown> })
  if (result.isError) throw new Error(textOf(result))
  return result.structuredContent
}

/** The text of a call that must fail. */
export async function failTool(client: Client, name: string, args: object = {}): Promise<string> {
  const result = await client.callTool({ name, arguments: args as Record<string, unknown> })
  if (!result.isError) throw new Error(`${name} did not fail: ${textOf(result)}`)
  return textOf(result)
}

/** The text of a tool's result. */
export const textOf = (result: any): string =>
  result.content.map((block: { text: string }) => block.text).join('\n')
