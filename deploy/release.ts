/**
 * `npm run release -- 0.3.0` makes a release in the repository, and publishes nothing. The command sets the version,
 * dates the changelog, commits, tags, packs the client and builds the image. Building the image needs docker or podman.
 * The option `--no-image` leaves the image out.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../shared/config/configError.ts'

const FOLDER = join(import.meta.dir, '..')
const OUT = 'dist'
/** Lists the npm packages of the release: the client library, and the relay for MCP hosts. */
const PACKAGES = ['./api/client', './api/mcp/package']
const VERSIONED = [
  'package.json',
  'api/client/package.json',
  'api/mcp/package/package.json',
  'api/mcp/package/server.json',
]
const MANIFEST = 'deploy/kubernetes/kustomization.yaml'
const UNRELEASED = '## Unreleased\n'

const say = (line: string) => process.stdout.write(`${line}\n`)

/**
 * Runs a program in the folder of the repository. @returns the output of the program. @throws {ConfigError} with the
 * errors of the program.
 */
function run(...command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: FOLDER })
  if (exitCode !== 0) throw new ConfigError(`${command.join(' ')}: ${stderr.toString().trim()}`)
  return stdout.toString().trim()
}

const numbersOf = (version: string) => version.split('.').map(Number)

/** Tells whether version `a` of the service is later than version `b`. */
export function isLater(a: string, b: string): boolean {
  const [one, other] = [numbersOf(a), numbersOf(b)]
  const at = one.findIndex((number, n) => number !== other[n])
  return at >= 0 && one[at]! > other[at]!
}

/**
 * Returns the changelog with its unreleased entries under the heading of the new version. @throws {ConfigError} if the
 * changelog has no unreleased entries.
 */
export function dateChangelog(changelog: string, version: string, date: string): string {
  const [head, rest] = changelog.split(UNRELEASED)
  if (rest === undefined)
    throw new ConfigError('CHANGELOG.md: must have the heading `## Unreleased`')
  const next = rest.indexOf('\n## ')
  const entries = (next < 0 ? rest : rest.slice(0, next)).trim()
  if (entries === '') throw new ConfigError('CHANGELOG.md: must have entries under `## Unreleased`')
  return `${head}${UNRELEASED}\n## ${version} (${date})\n\n${entries}\n${next < 0 ? '' : rest.slice(next)}`
}

function change(path: string, edit: (text: string) => string): void {
  const file = join(FOLDER, path)
  writeFileSync(file, edit(readFileSync(file, 'utf8')))
}

function release(version: string | undefined, isImageWanted: boolean): void {
  if (version === undefined || !/^\d+\.\d+\.\d+$/.test(version))
    throw new ConfigError('usage: npm run release -- MAJOR.MINOR.PATCH [--no-image]')
  const current = JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8')).version
  if (!isLater(version, current)) throw new ConfigError(`${version}: must be later than ${current}`)
  if (run('git', 'status', '--porcelain') !== '')
    throw new ConfigError('the working tree has changes: commit or remove them first')
  const builder = isImageWanted ? findBuilder() : undefined
  change('CHANGELOG.md', (text) =>
    dateChangelog(text, version, new Date().toISOString().slice(0, 10)),
  )
  for (const path of VERSIONED) {
    change(path, (text) => text.replaceAll(/"version": "[^"]*"/g, `"version": "${version}"`))
  }
  change(MANIFEST, (text) => text.replace(/newTag: "[^"]*"/, `newTag: "${version}"`))
  run('git', 'commit', '--all', '--message', `Release ${version}`)
  run('git', 'tag', '--annotate', `v${version}`, '--message', `Purser ${version}`)
  mkdirSync(join(FOLDER, OUT), { recursive: true })
  const packed = PACKAGES.map(
    (folder) =>
      `${OUT}/${run('npm', 'pack', folder, '--pack-destination', OUT).split('\n').at(-1)}`,
  )
  say(`released ${version}: commit, tag v${version}, ${packed.join(', ')}`)
  if (builder === undefined) say('no image')
  else {
    run(builder, 'build', '--tag', `purser:${version}`, '.')
    say(`image purser:${version}`)
  }
  say(
    `Publish it: git push --follow-tags, ${packed.map((file) => `npm publish ${file}`).join(', ')}, ${builder ?? 'docker'} push`,
  )
}

/**
 * Returns the name of a program that builds images, `docker` or `podman`. @throws {ConfigError} if neither docker nor
 * podman reaches its daemon
 */
function findBuilder(): string {
  const builder = ['docker', 'podman'].find(
    (program) => Bun.which(program) !== null && Bun.spawnSync([program, 'info']).exitCode === 0,
  )
  if (builder === undefined)
    throw new ConfigError('neither docker nor podman answers: start one, or add --no-image')
  return builder
}

if (import.meta.main) {
  try {
    release(process.argv[2], !process.argv.includes('--no-image'))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}
