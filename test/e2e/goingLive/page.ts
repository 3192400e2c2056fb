/** Reads the commands of docs/going-live.md in order, and for each command the lines that it prints. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const PAGE = join(import.meta.dir, '../../../docs/going-live.md')

export type Step = {
  /** Holds the heading of a step of the page docs/going-live.md, such as `3. The database`. */
  title: string
  script: string
  /** Holds the lines that the commands of a step must print, in which `…` stands for any text. */
  prints: string[]
}

/**
 * Reads the command blocks of the page docs/going-live.md. A text block that follows a command block holds the output
 * of its commands.
 */
export function readSteps(): Step[] {
  const steps: Step[] = []
  let title = ''
  const blocks = readFileSync(PAGE, 'utf8').matchAll(/^## (.*)$|^```(sh|text)\n([\s\S]*?)^```$/gm)
  for (const [, heading, kind, text = ''] of blocks) {
    if (heading !== undefined) title = heading
    else if (kind === 'sh') steps.push({ title, script: text, prints: [] })
    else steps.at(-1)!.prints = text.trimEnd().split('\n')
  }
  return steps
}

/** Tells whether a text contains a line of the given form, in which `…` stands for any text. */
export function hasLine(text: string, form: string): boolean {
  const parts = form.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 'm').test(text)
}
