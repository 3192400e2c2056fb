/** docs/going-live.md: its commands in their order, each with the lines that it prints. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const PAGE = join(import.meta.dir, '../../../docs/going-live.md')

export type Step = {
  /** The heading, such as `3. The database`. */
  title: string
  script: string
  /** Printed lines; `…` stands for anything. */
  prints: string[]
}

/** The blocks of commands; a block of text after one says what it prints. */
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

/** Whether a text has a line of this form. */
export function hasLine(text: string, form: string): boolean {
  const parts = form.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 'm').test(text)
}
