/** Reads the guides in the repository's folder docs. The service serves them as web pages. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '../..')
/** Holds the address of the service in the examples of the guides. */
const EXAMPLE_URL = 'http://127.0.0.1:3000'

/** Names the guides in the folder docs, ordered by their readers: agents, sellers, authors of clients, operators. */
const GUIDES = [
  'agent',
  'seller',
  'mail',
  'vault',
  'purse',
  'till',
  'contract',
  'clients',
  'operator',
  'going-live',
  'growing',
  'settings',
  'operating',
  'fair-shares',
  'scaling',
]

export type Guide = { name: string; summary: string; text: string }

/**
 * Returns the guides, with the service's own address in their examples. @param baseUrl replaces the example address in
 * the guides.
 */
export const guides = (baseUrl: string): Guide[] =>
  GUIDES.map((name) => {
    const text = readFileSync(join(ROOT, 'docs', `${name}.md`), 'utf8')
    return {
      name,
      summary: /^# (.+)$/m.exec(text)![1]!,
      text: text.replaceAll(EXAMPLE_URL, baseUrl),
    }
  })

/**
 * Returns the other files to which the guides link, keyed by path. The linked files are the examples and SECURITY.md.
 */
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
