/** Runs Squawk (a linter for SQL migrations) on the migrations that run on databases in use. */
import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const FOLDER = join(import.meta.dir, '../../sql/migrations')
const SQUAWK = join(import.meta.dir, '../../node_modules/.bin/squawk')
/** Names the first migration after release 0.1.0. Earlier migrations run only on empty tables. */
const FIRST_NEW = '000026'

/**
 * Lists the Squawk rules about timeouts that the check leaves out, because the migrator itself limits how long a
 * migration waits for locks. Statements on large tables have no time limit, because no other statement needs their
 * locks.
 */
const RULES_OF_MIGRATOR = ['require-lock-timeout', 'require-statement-timeout']
/**
 * Lists the Squawk rules about integers that the check leaves out, because the integers of this schema are counts and
 * limits, and never ids.
 */
const NOT_OURS = ['prefer-bigint-over-int', 'prefer-bigint-over-smallint']

/**
 * Runs Squawk once on all files, because each start of Squawk takes a second.
 * @returns the errors that Squawk reports
 */
function squawk(paths: readonly string[], isOnline: boolean): string {
  const { stdout, stderr } = Bun.spawnSync([
    SQUAWK,
    '--pg-version=15',
    '--reporter=gcc',
    ...(isOnline
      ? // The migrator first drops the remains of a failed index build.
        ['--exclude=prefer-robust-stmts']
      : ['--assume-in-transaction']),
    ...[...RULES_OF_MIGRATOR, ...NOT_OURS].map((rule) => `--exclude=${rule}`),
    ...paths,
  ])
  return stdout.toString() + stderr.toString().replace(/^\s*Found 0 issues.*$/ms, '')
}

test.each([
  ['that run in a transaction', false],
  ['that build an index without blocking writers', true],
])('the SQL checker Squawk accepts the migrations %s', (_which, isOnline) => {
  const paths = readdirSync(FOLDER)
    .filter((name) => name >= FIRST_NEW)
    .map((name) => join(FOLDER, name))
    .filter((path) => readFileSync(path, 'utf8').startsWith('-- online:') === isOnline)
  expect(paths.length).toBeGreaterThan(0)
  expect(squawk(paths, isOnline)).toBe('')
})

test('each index that a migration builds online can be built again after a crash of the migration', () => {
  const built = readdirSync(FOLDER).flatMap((name) => {
    const text = readFileSync(join(FOLDER, name), 'utf8')
    if (!text.startsWith('-- online:')) return []
    return [
      ...text.matchAll(/^create (?:unique )?index concurrently (if not exists )?(\w+)/gm),
    ].map(([, ifNotExists, index]) => ({
      index,
      isRepeatable:
        ifNotExists !== undefined || text.includes(`drop index concurrently if exists ${index};`),
    }))
  })
  expect(built.length).toBeGreaterThan(10)
  expect(built.filter(({ isRepeatable }) => !isRepeatable)).toEqual([])
})

test.each([
  ['an index that blocks writers', 'create index a on messages (subject);', 'concurrent'],
  ['a column that the previous release reads', 'alter table messages drop column subject;', 'drop'],
  ['a rewrite of a table', 'alter table messages alter column subject type varchar(9);', 'type'],
])('squawk refuses a migration with %s', (_what, sql, word) => {
  const folder = mkdtempSync(join(tmpdir(), 'purser-squawk-'))
  try {
    writeFileSync(join(folder, '1.sql'), sql)
    expect(squawk([join(folder, '1.sql')], false)).toInclude(word)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
