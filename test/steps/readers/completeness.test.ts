/** Tests that every function that reads untrusted text is measured by the test that counts steps. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { OTHER_EXPORTS } from './otherExports.ts'
import { READERS } from './readers.ts'

const ROOT = join(import.meta.dir, '../../../shared')

/** Returns the file and the name of each function that the folders for untrusted texts export. */
async function exportedFunctions(): Promise<string[]> {
  const found: string[] = []
  for (const part of ['mail', 'vault', 'http', 'till', 'oauth', 'people', 'purse']) {
    for (const file of new Bun.Glob('**/*.ts').scanSync(join(ROOT, part))) {
      for (const [name, value] of Object.entries(await import(join(ROOT, part, file)))) {
        if (typeof value === 'function') found.push(`${part}/${file} ${name}`)
      }
    }
  }
  return found
}

test('for each exported function that reads untrusted input, a test counts the steps of its work, or a list gives the reason for no such test', async () => {
  const measured = new Set(READERS.map(({ name }) => name.split(': ')[0]!))
  const exported = await exportedFunctions()
  expect(exported.filter((name) => !measured.has(name) && !OTHER_EXPORTS.has(name))).toEqual([])
  // The list of exceptions must contain no function that is measured or that no longer exists.
  const known = new Set(exported)
  expect([...OTHER_EXPORTS].filter((name) => measured.has(name) || !known.has(name))).toEqual([])
})
