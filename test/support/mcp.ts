import { expect } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { TestDatabase } from './database/database.ts'
import type { Agent } from './service.ts'
import { waitFor } from './waitFor.ts'

/**
 * Connects the official MCP client to the service with an API key. The MCP client compares every tool result with the
 * output schema of the tool.
 */
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

/** Calls an MCP tool and expects success. @returns the data in the result of the tool */
export async function callTool(client: Client, name: string, args: object = {}): Promise<any> {
  const result = await client.callTool({ name, arguments: args as Record<string, unknown> })
  if (result.isError) throw new Error(textOf(result))
  return result.structuredContent
}

/** Calls an MCP tool and expects an error. @returns the text of the tool’s result */
export async function failTool(client: Client, name: string, args: object = {}): Promise<string> {
  const result = await client.callTool({ name, arguments: args as Record<string, unknown> })
  if (!result.isError) throw new Error(`${name} did not fail: ${textOf(result)}`)
  return textOf(result)
}

/** Returns the text in the result of an MCP tool call. */
export const textOf = (result: any): string =>
  result.content.map((block: { text: string }) => block.text).join('\n')

/**
 * Cancels an MCP tool call that waits for a locked database row. Expects that the cancelled call fails at once, and
 * that another call gets its response before the row is unlocked.
 * @returns the message that the cancelled call would have labelled `late`
 */
export async function cancelUnderWay(
  client: Client,
  agent: Agent,
  { pool }: TestDatabase,
): Promise<string> {
  const mail = { to: ['a@example.com'], subject: 's', text: 't' }
  const { messageId } = await callTool(client, 'mail.send', mail)
  const locker = await pool.connect()
  try {
    await locker.query('begin')
    await locker.query('select from messages where message_id = $1 for update', [messageId])
    const abort = new AbortController()
    const args = { messageId, addLabels: ['late'] }
    const underWay = client.callTool({ name: 'mail.update_labels', arguments: args }, undefined, {
      signal: abort.signal,
    })
    await waitFor('the call to wait for the row', async () => {
      const { rows } = await pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      )
      return rows.length > 0
    })
    abort.abort('changed my mind')
    await expect(underWay).rejects.toThrow('changed my mind')
    expect((await callTool(client, 'whoami')).projectId).toBe(agent.project.id)
  } finally {
    await locker.query('commit')
    locker.release()
  }
  return messageId
}
