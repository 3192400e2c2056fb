import { readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'

const IMPORT = /from '(\.{1,2}\/[^']+\.ts)'/g

/**
 * The test files near a source file. First come the files of its name, then those that import it, then those of its part
 * in every room.
 */
export function nearTests(root: string, file: string): string[][] {
  const tests = [...new Bun.Glob('test/**/*.test.ts').scanSync({ cwd: root })]
    .filter((test) => !/node_modules|^test\/(?:clients|cluster|mutants)\//.test(test))
    .toSorted()
  const name = basename(file, '.ts')
  const [room = '', part = ''] = file.split('/')
  const imports = (test: string) =>
    [...readFileSync(join(root, test), 'utf8').matchAll(IMPORT)].some(
      ([, path = '']) => relative('.', join(dirname(test), path)) === file,
    )
  const own = tests.filter((test) => basename(test, '.test.ts') === name)
  const importing = tests.filter((test) => !own.includes(test) && imports(test))
  const first = [...own, ...importing]
  const isInPart = (test: string, where: string) =>
    test.startsWith(`test/${where}/${part}/`) && !first.includes(test)
  const rooms = [room, ...['shared', 'sql', 'workers', 'api'].filter((other) => other !== room)]
  return [first, ...rooms.map((where) => tests.filter((test) => isInPart(test, where)))].filter(
    (stage) => stage.length > 0,
  )
}
