import { TOOLS } from './tools/tools.ts'

/** The form of tool names: with dots, or with underscores for hosts that refuse dots. */
export type Naming = 'dotted' | 'underscore'

const names = TOOLS.map(({ name }) => name).filter((name) => name.includes('.'))
const anyName = new RegExp(
  `\\b(?:${names.map((name) => name.replaceAll('.', '\\.')).join('|')})\\b`,
  'g',
)

/** Writes the tool names in a text of ours in this naming. */
export const named = (text: string, naming: Naming): string =>
  naming === 'dotted' ? text : text.replace(anyName, (name) => name.replaceAll('.', '_'))

/** Finds a tool by its name in either naming. */
export const findTool = (name: string) =>
  TOOLS.find((tool) => tool.name === name || tool.name.replaceAll('.', '_') === name)
