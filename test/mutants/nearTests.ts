import { readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'

const IMPORT = /from '(\.{1,2}\/[^']+\.ts)'/g

/**
 * Finds the test files that belong to a source file: first those with the same name, and then those that import the
 * source file.
 */
export function nearTests(root: string, file: string): string[] {
  const tests = [...new Bun.Glob('test/**/*.test.ts').scanSync({ cwd: root })].toSorted()
  const name = basename(file, '.ts')
  const own = tests.filter((test) => basename(test, '.test.ts') === name)
  const imports = (test: string) =>
    [...readFileSync(join(root, test), 'utf8').matchAll(IMPORT)].some(
      ([, path = '']) => relative('.', join(dirname(test), path)) === file,
    )
  return [...own, ...tests.filter((test) => !own.includes(test) && imports(test))]
}
