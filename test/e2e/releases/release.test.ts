/** Runs `npm run release` in a copy of the repository, without publishing anything. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { dateChangelog, isLater } from '../../../deploy/release.ts'
import '../../support/long.ts'

const ROOT = join(import.meta.dir, '../../..')
const folder = mkdtempSync(join(tmpdir(), 'purser-making-'))

function run(command: string[], cwd = folder) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd })
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() }
}
const git = (...args: string[]) =>
  run(['git', '-c', 'user.name=Ann', '-c', 'user.email=ann@x.test', ...args])
const release = (version: string) =>
  run([
    'env',
    'GIT_AUTHOR_NAME=Ann',
    'GIT_AUTHOR_EMAIL=ann@x.test',
    'GIT_COMMITTER_NAME=Ann',
    'GIT_COMMITTER_EMAIL=ann@x.test',
    process.execPath,
    'deploy/release.ts',
    version,
    '--no-image',
  ])
const changelog = () => readFileSync(join(folder, 'CHANGELOG.md'), 'utf8')

beforeAll(() => {
  const { stdout } = run(
    ['git', 'ls-files', '--cached', '--others', '--exclude-standard', '-z'],
    ROOT,
  )
  for (const path of stdout
    .split('\0')
    .filter((name) => /^(?:api|shared|deploy|[^/]+$)/.test(name) && name !== '')) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    cpSync(join(ROOT, path), join(folder, path))
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, '.gitignore'), 'node_modules\ndist/\n')
  writeFileSync(
    join(folder, 'CHANGELOG.md'),
    '# Changelog\n\n## Unreleased\n\n- A new thing.\n\n## 0.1.0 (365cddf)\n\n- All.\n',
  )
  git('init', '--initial-branch=main')
  git('add', '--all')
  git('commit', '--message', 'Begin')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a maintainer who runs the release command gets a release, or an error that says why not', () => {
  test('a release is refused for an earlier version, and for a version that is not three numbers', () => {
    expect(release('0.0.9').stderr).toContain('0.0.9: must be later than')
    expect(release('1.0').stderr).toContain('usage: npm run release')
  })

  test('a release is refused while the working tree has changes', () => {
    writeFileSync(join(folder, 'README.md'), 'changed')
    expect(release('9.0.0').stderr).toContain('the working tree has changes')
    git('checkout', '--', 'README.md')
  })

  test('a release sets the version, dates the changelog, makes a git commit and a tag, and packs the client library', () => {
    const { exitCode, stdout, stderr } = release('9.0.0')
    expect(stderr).toBe('')
    expect(exitCode).toBe(0)
    expect(changelog()).toMatch(
      /^# Changelog\n\n## Unreleased\n\n## 9\.0\.0 \(\d{4}-\d\d-\d\d\)\n\n- A new thing\.\n\n## 0\.1\.0/,
    )
    for (const path of ['package.json', 'api/client/package.json']) {
      expect(JSON.parse(readFileSync(join(folder, path), 'utf8')).version).toBe('9.0.0')
    }
    expect(git('log', '-1', '--format=%s').stdout.trim()).toBe('Release 9.0.0')
    expect(git('describe', '--exact-match').stdout.trim()).toBe('v9.0.0')
    expect(git('status', '--porcelain').stdout).toBe('')
    const [, tarball = ''] = /(dist\/purser-client-9\.0\.0\.tgz)/.exec(stdout) ?? []
    expect(run(['tar', '-tzf', tarball]).stdout).toContain('package/dist/main.js')
  })

  test('a release is refused if the changelog has no entries for the new version', () => {
    expect(release('9.0.1').stderr).toContain('must have entries under `## Unreleased`')
    expect(git('status', '--porcelain').stdout).toBe('')
  })
})

test('the versions of two releases are compared by their numbers, and not as text', () => {
  expect(isLater('0.10.0', '0.9.9')).toBe(true)
  expect(isLater('0.9.9', '0.10.0')).toBe(false)
  expect(isLater('1.0.0', '1.0.0')).toBe(false)
})

test('a release is refused if the changelog lacks the heading `## Unreleased`', () => {
  expect(() => dateChangelog('# Changelog\n', '1.0.0', '2026-01-01')).toThrow('## Unreleased')
})
