/** Reads the code blocks of a documentation page, in the order in which a reader pastes them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dir, '../../..')

export type Block = {
  page: string
  language: string
  /** Holds the first line of the code block. The tables of the test name a code block by this line. */
  name: string
  text: string
  /** Holds the lines that the pasted code block must print, in which `…` stands for any text. */
  prints: string[]
}

/**
 * Reads the code blocks of a page. A `text` block holds the output of the block before it. A block without a language
 * is a drawing, so the function leaves it out.
 */
export function readBlocks(page: string): Block[] {
  const blocks: Block[] = []
  const source = readFileSync(join(ROOT, page), 'utf8')
  for (const [, language = '', text = ''] of source.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)) {
    if (language === 'text') blocks.at(-1)!.prints = text.trimEnd().split('\n')
    else if (language !== '') {
      blocks.push({ page, language, name: text.split('\n', 1)[0]!, text, prints: [] })
    }
  }
  return blocks
}
