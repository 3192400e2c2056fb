import { TOOLS } from './tools/tools.ts'

/** Names the notation of MCP tool names: with dots, or with underscores for MCP hosts that refuse dots. */
export type Naming = 'dotted' | 'underscore'

const names = TOOLS.map(({ name }) => name).filter((name) => name.includes('.'))
const anyName = new RegExp(
  `\\b(?:${names.map((name) => name.replaceAll('.', '\\.')).join('|')})\\b`,
  'g',
)

/** Replaces the tool names in a text of this service by names in the given notation. */
export const named = (text: string, naming: Naming): string =>
  naming === 'dotted' ? text : text.replace(anyName, (name) => name.replaceAll('.', '_'))

/** Finds an MCP tool by its name, with dots or underscores. */
export const findTool = (name: string) =>
  TOOLS.find((tool) => tool.name === name || tool.name.replaceAll('.', '_') === name)
