import { TOOLS } from './tools.ts'

/** Whether tool names are written with dots, as the specification has them, or for hosts that refuse dots. */
export type Naming = 'dotted' | 'underscore'

const names = TOOLS.map(({ name }) => name).filter((name) => name.includes('.'))
const anyName = new RegExp(
  `\\b(?:${names.map((name) => name.replaceAll('.', '\\.')).join('|')})\\b`,
  'g',
)

/** A tool's name, or a text that speaks of tools, in that naming. */
export const named = (text: string, naming: Naming): string =>
  naming === 'dotted' ? text : text.replace(anyName, (name) => name.replaceAll('.', '_'))

/** The tool of a name in either naming. */
export const findTool = (name: string) =>
  TOOLS.find((tool) => tool.name === name || tool.name.replaceAll('.', '_') === name)
