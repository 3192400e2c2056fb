/** The pages for readers, as the repository has them: served by the service that they describe. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '../..')
/** The address in the pages. */
const EXAMPLE_URL = 'http://127.0.0.1:3000'

/** Pages of the folder docs, in the order of their readers: agents, sellers, authors of clients, operators. */
const GUIDES = [
  'agent',
  'seller',
  'mail',
  'vault',
  'purse',
  'till',
  'contract',
  'operator',
  'going-live',
  'growing',
  'settings',
  'operating',
  'scaling',
]

export type Guide = { name: string; summary: string; text: string }

/** @param baseUrl stands in the pages for the address of a first start. */
export const guides = (baseUrl: string): Guide[] =>
  GUIDES.map((name) => {
    const text = readFileSync(join(ROOT, 'docs', `${name}.md`), 'utf8')
    return {
      name,
      summary: /^# (.+)$/m.exec(text)![1]!,
      text: text.replaceAll(EXAMPLE_URL, baseUrl),
    }
  })

/** Files that the pages link to beside each other, by their path: the examples and SECURITY.md. */
export function linkedFiles(): ReadonlyMap<string, string> {
  const paths = [
    'SECURITY.md',
    ...readdirSync(join(ROOT, 'examples')).map((name) => `examples/${name}`),
  ]
  return new Map(
    paths
      .filter((path) => existsSync(join(ROOT, path)))
      .map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]),
  )
}
