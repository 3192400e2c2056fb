import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const read = (path: string) => readFileSync(join(import.meta.dir, '..', path), 'utf8')

test('the seller in the README is the one under test', () => {
  const shown = /```ts\n([\s\S]*?)```/.exec(read('README.md'))?.[1]
  const [, ...code] = read('test/clients/seller.ts').trimEnd().split('\n')
  expect(shown?.trimEnd().split('\n')).toEqual(code)
})

test('every variable that is read stands in the README', () => {
  const schemas = read('shared/config/variables.ts').matchAll(
    /const \w*[vV]ariables = z\.object\(\{([\s\S]*?)\n\}\)/g,
  )
  const names = [...schemas].flatMap(([, schema]) =>
    [...schema!.matchAll(/^ {2}([A-Z_]+):/gm)].map((match) => match[1]!),
  )
  expect(names).toContain('PURSER_API_KEY')
  expect(names.length).toBeGreaterThan(20)
  const settings = read('README.md').split('## Settings')[1]!
  for (const name of names) expect([name, settings.includes(`\`${name}\``)]).toEqual([name, true])
})
