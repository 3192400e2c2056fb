/** Tests the command `bun run secrets:new`. */
import { afterAll, expect, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SECRETS_OF } from '../../../shared/config/secrets.ts'
import { startProcess } from '../../support/process/process.ts'
import '../../support/long.ts'

const folder = mkdtempSync(join(tmpdir(), 'purser-secrets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function run(...args: string[]) {
  await using made = startProcess('api/operations/secretsMain.ts', {}, args)
  return { code: await made.exited, text: made.stdout(), error: made.stderr() }
}
const NAMES = [
  ...['NODE_ENV', 'MASTER_KEYS', 'RECEIPT_SIGNING_KEYS', 'SETTLEMENT_KEYS', 'METRICS_TOKEN'],
  ...['POSTGRES_PASSWORD', 'BOOTSTRAP_PLATFORM_KEY'],
]
const namesIn = (text: string) => [...text.matchAll(/^(\w+)=.+$/gm)].map(([, name]) => name!)

test('without an argument, the command bun run secrets:new prints new secrets, and a second run prints different ones', async () => {
  const [one, other] = await Promise.all([run(), run()])
  expect([one.code, namesIn(one.text)]).toEqual([0, NAMES])
  expect(one.error).toMatch(/The gas wallet 0x[\dA-Fa-f]{40} needs ether/)
  const values = (text: string) => text.split('\n').filter((line) => !/^(NODE_ENV=.*)?$/.test(line))
  expect(values(one.text).filter((line) => other.text.includes(line))).toEqual([])
})

test('the command bun run secrets:new writes the secrets to a new file that only its owner can read, and never overwrites a file', async () => {
  const file = join(folder, 'production.env')
  const made = await run(file)
  expect([made.code, made.text]).toEqual([0, ''])
  expect(namesIn(readFileSync(file, 'utf8'))).toEqual(NAMES)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const before = readFileSync(file, 'utf8')
  const again = await run(file)
  expect([again.code, again.error]).toEqual([78, `${file} exists; name a new file\n`])
  expect(readFileSync(file, 'utf8')).toBe(before)
})

test('with --units, the command bun run secrets:new writes a file for each part of the service with only the secrets of this part', async () => {
  const units = join(folder, 'units')
  mkdirSync(units)
  const made = await run('--units', units)
  expect([made.code, made.text]).toEqual([0, ''])
  const programs = ['api', 'migrate', 'smtp']
  const parts = Object.keys(SECRETS_OF)
  expect(readdirSync(units).toSorted()).toEqual(
    [
      ...['common.env', 'database.sql'],
      ...parts.map((part) => `${programs.includes(part) ? part : `workers-${part}`}.env`),
    ].toSorted(),
  )
  const read = (name: string) => readFileSync(join(units, name), 'utf8')
  for (const [part, names] of Object.entries(SECRETS_OF)) {
    const found = namesIn(read(`${programs.includes(part) ? part : `workers-${part}`}.env`))
    expect(found.filter((name) => names.includes(name as never))).toEqual(
      names.filter((name) => NAMES.includes(name)),
    )
    expect(found.includes('SETTLEMENT_KEYS')).toBe(names.includes('SETTLEMENT_KEYS' as never))
  }
  expect(namesIn(read('common.env'))).toEqual(['NODE_ENV', 'DATABASE_URL', 'DATA_DIR'])
  const [, password] = /:(\w+)@/.exec(read('common.env'))!
  expect(read('database.sql')).toContain(`create role purser login password '${password}';`)
})

test('with --units, the command bun run secrets:new writes no file if one of the files already exists', async () => {
  const units = join(folder, 'used')
  mkdirSync(units)
  writeFileSync(join(units, 'smtp.env'), 'kept')
  const { code, error } = await run('--units', units)
  expect([code, error]).toEqual([78, `${join(units, 'smtp.env')} exists; name a new file\n`])
  expect(readdirSync(units)).toEqual(['smtp.env'])
})

test('the command bun run secrets:new prints its usage if it gets an unknown option, two file names or an empty folder name', async () => {
  const given = [['--nothing'], ['a', 'b'], ['a', '--units', folder], ['--units', '']]
  for (const { code, error } of await Promise.all(given.map((args) => run(...args)))) {
    expect([code, error]).toEqual([78, expect.stringMatching(/^usage: bun run secrets:new/)])
  }
})

test('if the command bun run secrets:new cannot write a file, its error names the file', async () => {
  const file = join(folder, 'absent', 'production.env')
  const { code, error } = await run(file)
  expect([code, error]).toEqual([78, `${file} cannot be written (ENOENT); name another\n`])
})
