/**
 * Tests that the documentation pages and the comments agree with the code about names, routes, numbers and decisions.
 */
import { expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { OPERATIONS } from '../api/client/operations.ts'

const ROOT = join(import.meta.dir, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => !/^(?:$|test\/fixtures|docs\/images|bun\.lock)/.test(path))
const withEnding = (pattern: RegExp) => tracked.filter((path) => pattern.test(path))

const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm
const code = withEnding(/\.(?:ts|sql|json|ya?ml|mjs|js|py|toml|css|html|conf|service)$/).map(read)
const names = new Set(
  code.flatMap((text) => text.replace(COMMENT, '').match(/[A-Za-z_][A-Za-z0-9_]*/g) ?? []),
)
/**
 * Lists the documentation pages of the project. The changelog is left out, because it names things that no longer
 * exist.
 */
const pages = withEnding(/\.md$/).filter((path) => path !== 'CHANGELOG.md')
const prose = pages.map((path) => [path, read(path).replace(/```[\s\S]*?```/g, '')] as const)
const comments = withEnding(/^(?:api|workers|sql|shared|test)\/.*\.ts$/).map(
  (path) => [path, (read(path).match(COMMENT) ?? []).join('\n')] as const,
)

/** Holds names in backticks that belong to other programs or to standards, and not to this project. */
const FOREIGN = new Set(
  `count_example OTEL_EXPORTER_OTLP_HEADERS REPLICATION_URL archive_timeout recovery_target_time transport_maps
   TRANSFER_WITH_AUTHORIZATION_TYPEHASH iPhonetik`.split(/\s+/),
)

test('each name in backticks on a documentation page or in a comment also occurs in the code', () => {
  const NAME = /`([a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]+_[A-Z_]+|[a-z]+_[a-z_]+)(?:\(\))?`/g
  const unknown = [...prose, ...comments].flatMap(([path, text]) =>
    [...text.matchAll(NAME)]
      .map(([, name]) => name!)
      .filter((name) => !names.has(name) && !FOREIGN.has(name))
      .map((name) => `${path}: ${name}`),
  )
  expect(unknown).toEqual([])
})

test('each HTTP route that a documentation page names exists', () => {
  const routes = Object.values(OPERATIONS).map(
    ([, path]) => new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  )
  const sources = code.join('\n')
  const isKnown = (path: string) =>
    routes.some((route) => route.test(path)) || sources.includes(`'${path}`)
  const unknown = pages.flatMap((page) =>
    [...read(page).matchAll(/\/v0\/[\w{}%/.-]*[\w}]/g)]
      .filter(([path]) => !isKnown(path))
      .map(([path]) => `${page}: ${path}`),
  )
  expect(unknown).toEqual([])
})

test('each decision in docs/decisions names a source file, and one of the named files refers back to the decision', () => {
  const decisions = pages.filter((path) => /^docs\/decisions\/(?!README)/.test(path))
  expect(decisions.length).toBeGreaterThan(4)
  const apart = decisions.filter(
    (page) =>
      ![...read(page).matchAll(/`((?:api|workers|sql|shared)\/[\w/]+\.ts)`/g)].some(([, path]) =>
        read(path!).includes(page),
      ),
  )
  expect(apart).toEqual([])
})

test('the README states the correct number of example programs', () => {
  const examples = withEnding(/^examples\/.*\.(?:ts|py)$/).length
  const NUMBERS = 'ten eleven twelve thirteen fourteen fifteen sixteen'.split(' ')
  expect(read('README.md')).toContain(`${NUMBERS[examples - 10]} programs`)
})

test('the state diagrams in the documentation have the states of the database schema', () => {
  const schema = read('sql/schema.sql')
  const statesOf = (table: string) =>
    /CHECK \(\(state = ANY \(ARRAY\[([^\]]*)/
      .exec(schema.slice(schema.indexOf(`constraint ${table}_state_check`)))![1]!
      .match(/\w+(?='::text)/g)!
      .toSorted()
  const diagrams = [
    ...read('ARCHITECTURE.md').matchAll(/state "(\w+)\.state" as \w+ \{([\s\S]*?)\n {2}\}/g),
  ]
  const drawn = diagrams.map(([, table, lines]) => {
    const states = lines!
      .match(/(?:^ +|--> )([a-z_]+)/gm)!
      .map((match) => match.replace(/^.*?([a-z_]+)$/, '$1'))
    return [
      table!,
      [...new Set(states.map((state) => state.replace(/_recipient$/, '')))].toSorted(),
    ] as const
  })
  expect(drawn.map(([table]) => table).toSorted()).toEqual([
    'chain_transactions',
    'inbound_mails',
    'outbound_mails',
    'outbound_recipients',
    'payments',
    'purchases',
    'vault_uses',
  ])
  expect(drawn).toEqual(drawn.map(([table]) => [table, statesOf(table)]))
})

test('the page ARCHITECTURE.md names only existing files', () => {
  const named = [
    ...read('ARCHITECTURE.md').matchAll(/`((?:api|workers|sql|shared|test)\/[\w/.]+)`/g),
  ].map(([, path]) => path!)
  expect(named.length).toBeGreaterThan(50)
  expect(
    named.filter((path) => !tracked.some((file) => file === path || file.startsWith(path))),
  ).toEqual([])
})
