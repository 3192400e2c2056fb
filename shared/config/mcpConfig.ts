import { ConfigError, withoutEmpty } from './config.ts'
import { faultLine } from './configError.ts'
import { describeIssue } from './describeIssue.ts'
import { mcpVariables } from './variables.ts'

/** Holds the settings of the MCP server over stdio. */
export type McpConfig = { url: string; apiKey: string; toolNames: 'dotted' | 'underscore' }

/**
 * Reads the environment of `bun run mcp`. An empty environment variable counts as absent. @throws {ConfigError} if a
 * variable has an invalid value.
 */
export function parseMcpConfig(env: Record<string, string | undefined>): McpConfig {
  const given = withoutEmpty(env)
  const result = mcpVariables.safeParse(given)
  if (!result.success)
    throw new ConfigError(faultLine(describeIssue(result.error.issues[0]!, given)))
  const { PURSER_URL, PURSER_API_KEY, PURSER_TOOL_NAMES } = result.data
  return {
    url: PURSER_URL.replace(/\/+$/, ''),
    apiKey: PURSER_API_KEY,
    toolNames: PURSER_TOOL_NAMES,
  }
}
