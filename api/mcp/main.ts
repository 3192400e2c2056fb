import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ConfigError } from '../../shared/config/config.ts'
import { parseMcpConfig } from '../../shared/config/mcpConfig.ts'
import { relay } from './relay.ts'

/**
 * Starts the MCP server over stdio (`bun run mcp`). It writes MCP messages to stdout, and therefore every other output
 * to stderr.
 */
try {
  const config = parseMcpConfig(process.env)
  const host = new StdioServerTransport()
  process.stdin.on('end', () => void host.close())
  await relay(host as Transport, config)
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : String(error)}\n`)
  process.exitCode = error instanceof ConfigError ? 78 : 1
}
