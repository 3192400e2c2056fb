/**
 * Tests that docs/clients.md names each tested client of another author in its present version, and the number of its
 * test cases.
 */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Glob } from 'bun'

const ROOT = join(import.meta.dir, '../..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const page = read('docs/clients.md')
const MATRIX = 'test/clients/matrix.test.ts'

/** Lists the packages of test/clients that the clients need, but that are no clients of the service. */
const PARTS = ['@types/express', 'axios', 'next', 'ox']

type Manifest = Record<'dependencies' | 'devDependencies', Record<string, string>>
const versionsOf = (path: string): Record<string, string> => {
  const { dependencies, devDependencies } = JSON.parse(read(path)) as Manifest
  return { ...dependencies, ...devDependencies }
}

/** Lists the packages that docs/clients.md names, each with its version. */
const named = [...page.matchAll(/`([@\w/-]+)` (\d[\w.-]*\d)/g)].map(
  ([, name = '', version = '']) => [name, version] as const,
)

test('docs/clients.md names each client in the version that the tests install', () => {
  const [clients, ours] = [versionsOf('test/clients/package.json'), versionsOf('package.json')]
  const sources = read('test/api/http/input/referenceQueries.test.ts')
  const stale = named.filter(
    ([name, version]) =>
      clients[name] !== version &&
      ours[name] !== version &&
      !sources.includes(`\`${name}\` ${version}`),
  )
  expect(stale).toEqual([])
  const names = named.map(([name]) => name)
  const missing = Object.keys(clients).filter((name) => !names.includes(name))
  expect(missing.toSorted()).toEqual(PARTS)
})

/**
 * Lists the tests of the given files, as the whole suite declares them. The test runner gets a pattern that fits no
 * test name, so it lists all tests and runs none.
 */
async function declaredTests(files: string[]): Promise<{ name: string; file: string }[]> {
  const report = join(folder, 'tests.xml')
  const listing = Bun.spawn(
    [
      ...[process.execPath, 'test', '--test-name-pattern', 'no test has this name'],
      ...['--reporter=junit', `--reporter-outfile=${report}`, ...files],
    ],
    { cwd: ROOT, env: { ...process.env, TEST_WHOLE: '1' }, stdout: 'ignore', stderr: 'ignore' },
  )
  await listing.exited
  const cases = readFileSync(report, 'utf8').matchAll(
    /<testcase name="([^"]*)"[^>]* file="([^"]*)"/g,
  )
  return [...cases].map(([, name = '', file = '']) => ({ name, file }))
}
const folder = mkdtempSync(join(tmpdir(), 'purser-figures-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Lists the table rows of docs/clients.md, each as a list of its cells. */
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
const figure = (cases: unknown[]) =>
  cases.length === 0 ? '-' : `${cases.length} of ${cases.length}`
const filesIn = (text: string): string[] => text.match(/test\/[\w/]+\.test\.ts/g) ?? []

test('docs/clients.md counts the cases that the tests declare, and leaves out no test of test/clients', async () => {
  const own = 'test/clients/figures.test.ts'
  const inFolder = [...new Glob('test/clients/{*,*/*}.test.ts').scanSync(ROOT)].filter(
    (file) => !file.includes('node_modules') && file !== own,
  )
  const files = [...new Set([...filesIn(page), MATRIX])].filter((file) => file !== own)
  expect(inFolder.filter((file) => !files.includes(file))).toEqual([])
  const declared = await declaredTests(files)
  const casesOf = (text: string) => declared.filter(({ file }) => filesIn(text).includes(file))

  const counted = rows.filter(([, , tests = '']) => filesIn(tests).length > 0)
  expect(counted.length).toBeGreaterThan(14)
  expect(counted.map(([, tried, tests, passed]) => [tried, tests, passed])).toEqual(
    counted.map(([, tried, tests]) => [tried, tests, figure(casesOf(tests!))]),
  )
  const reference = page.split('\n\n').at(-1)!
  expect(reference).toContain(`${figure(casesOf(reference))} cases`)

  // The name of each test in matrix.test.ts contains a wallet, a seller and a version of x402.
  const pairs = casesOf(MATRIX)
    .map(
      ({ name }) =>
        /^(?<wallet>.+) pays (?<seller>.+) in version (?<version>\d)$/.exec(name) ??
        /^the buyer (?<wallet>.+) does not pay the seller (?<seller>.+), and loses/.exec(name),
    )
    .map((match) => match?.groups)
    .filter((pair) => pair !== undefined)
  const ofKind = (kind: 'wallet' | 'seller') => {
    const names = [...new Set(pairs.map((pair) => pair[kind]!))]
    return names.map((name) => {
      const versions = ['1', '2', undefined].map((version) =>
        figure(pairs.filter((pair) => pair[kind] === name && pair.version === version)),
      )
      return [name, ...versions]
    })
  }
  const inTables = rows
    .filter(
      (row) => row.length === 4 && row.slice(1).every((cell) => /^(?:-|\d+ of \d+)$/.test(cell)),
    )
    .map(([name = '', ...figures]) => [name.replace(/`([^`]+)` \S+/, '$1'), ...figures])
  expect(inTables.toSorted()).toEqual([...ofKind('wallet'), ...ofKind('seller')].toSorted())
})
