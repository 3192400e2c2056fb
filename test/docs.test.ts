/** Tests that the documentation pages are short, have valid links, and cover all settings and examples. */
import { expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { X402_REASONS } from '../shared/till/x402.ts'

const ROOT = join(import.meta.dir, '..')
const README_LINES_MAX = 130
/** Matches a path in backticks that begins with the name of a project folder. */
const PATH = /`((?:api|workers|shared|sql|test|docs|examples)\/[\w./-]+)`/g

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' })
const pages = git('ls-files', '--cached', '--others', '--exclude-standard', '*.md')
  .split('\n')
  .filter((path) => path !== '')

/** Returns the text of a page without its code blocks, because brackets and backticks have other meanings there. */
const prose = (path: string) => read(path).replace(/```[\s\S]*?```/g, '')

test(`the README file has at most ${README_LINES_MAX} lines`, () => {
  expect(read('README.md').split('\n').length).toBeLessThanOrEqual(README_LINES_MAX)
})

test('in the documentation, every item of a numbered list begins on its own line', () => {
  const merged = pages.flatMap((page) =>
    prose(page)
      .split('\n')
      .filter((line) => !line.startsWith('#') && /[.)`] \d{1,2}\.(?: [A-Z*`[]|$)/.test(line))
      .map((line) => `${page}: ${line}`),
  )
  expect(merged).toEqual([])
})

test('every link of every documentation page leads to an existing file and an existing heading', () => {
  const dead: string[] = []
  for (const page of pages) {
    for (const [, target = ''] of prose(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?|mailto):/.test(target)) continue
      const [file = '', heading] = target.split('#')
      const path = file === '' ? page : join(dirname(page), file)
      const found = existsSync(join(ROOT, path))
      if (!found || (heading !== undefined && !headings(path).includes(heading))) {
        dead.push(`${page}: ${target}`)
      }
    }
  }
  expect(pages.length).toBeGreaterThan(10)
  expect(dead).toEqual([])
})

/** Returns the anchors that GitHub makes from the headings of a page. */
const headings = (path: string): string[] =>
  [...prose(path).matchAll(/^#+ (.*)$/gm)].map(([, text]) =>
    text!
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )

test('every file path in the documentation exists', () => {
  const missing = pages
    .filter((page) => page !== 'CHANGELOG.md')
    .flatMap((page) =>
      [...prose(page).matchAll(PATH)]
        .map(([, path]) => path!)
        .filter((path) => !/[A-Z]{4}/.test(path) && !path.startsWith('test/artefacts/'))
        .filter((path) => !existsSync(join(ROOT, path)))
        .map((path) => `${page}: ${path}`),
    )
  expect(missing).toEqual([])
})

test('the page docs/settings.md names every variable that the service reads', () => {
  const schemas = read('shared/config/variables.ts').matchAll(
    /const \w*[vV]ariables = z\.object\(\{([\s\S]*?)\n\}\)/g,
  )
  const names = [...schemas].flatMap(([, schema]) =>
    [...schema!.matchAll(/^ {2}([A-Z_]+):/gm)].map((match) => match[1]!),
  )
  expect(names).toContain('PURSER_API_KEY')
  expect(names.length).toBeGreaterThan(20)
  const settings = read('docs/settings.md')
  for (const name of names) expect([name, settings.includes(`\`${name}\``)]).toEqual([name, true])
})

test('every example is linked from a page of docs/', () => {
  const guides = pages.filter((page) => page.startsWith('docs/')).map(read)
  const examples = git('ls-files', 'examples/*.ts').trim().split('\n')
  expect(examples.length).toBeGreaterThan(5)
  for (const example of examples) {
    expect([example, guides.some((guide) => guide.includes(`](../${example})`))]).toEqual([
      example,
      true,
    ])
  }
})

test('the documentation names every command of package.json', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const text = pages.map(read).join('\n')
  const unknown = Object.keys(scripts).filter(
    (name) =>
      !name.startsWith('pre') && !new RegExp(`(npm|run|bun)[ \\w@.]* ${name}\\b`).test(text),
  )
  expect(unknown).toEqual([])
})

test('before its first `bun run`, a documentation page says what a machine without Bun runs instead', () => {
  const silent = pages
    .filter((page) => page !== 'CHANGELOG.md')
    .filter((page) => {
      const [before, after] = read(page).split('bun run', 2)
      return after !== undefined && !/[Ww]ithout Bun|If Bun is not installed/.test(before!)
    })
  expect(silent).toEqual([])
})

test('every command of package.json that runs tests or measurements first installs the packages of test/clients', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const installs = (name: string): boolean =>
    /install --frozen-lockfile --cwd test\/clients/.test(scripts[`pre${name}`] ?? '') ||
    scripts[`pre${name}`] === 'npm run pretest'
  const ofTests = Object.keys(scripts).filter((name) => /\btest\/\S*main\.ts/.test(scripts[name]!))
  expect(ofTests.length).toBeGreaterThan(6)
  expect(ofTests.filter((name) => !installs(name))).toEqual([])
})

test('the page docs/seller.md names every reason for which a payment is refused', () => {
  const page = read('docs/seller.md')
  expect(X402_REASONS.filter((reason) => !page.includes(`\`${reason}\``))).toEqual([])
})
