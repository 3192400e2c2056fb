/**
 * Tests that each exported function and class of the client has an example, and that the examples pass the type check.
 */
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '../../..')
const CLIENT = join(ROOT, 'api/client')

const files = (readdirSync(CLIENT, { recursive: true }) as string[]).filter(
  (name) => name.endsWith('.ts') && !name.startsWith('dist'),
)
const DOCUMENTED = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\nexport (?:async )?(?:function|class) (\w+)/g
const documented = files.flatMap((name) =>
  [...readFileSync(join(CLIENT, name), 'utf8').matchAll(DOCUMENTED)].map(([, doc, what]) => ({
    name: `${name}: ${what}`,
    example: /@example\n([\s\S]*)/
      .exec(doc!)?.[1]
      ?.replace(/^ \* ?/gm, '')
      .trim(),
  })),
)
const PUBLIC =
  /^(?:calls\/|purser\w*\.ts|verify\w+\.ts: verify|paywalls\/\w+: requirePayment|paywalls\/\w+\.ts: requirePayment)/
const wanted = documented.filter(({ name }) => PUBLIC.test(name))

test('each exported function of the client library has an example in its documentation', () => {
  expect(wanted.length).toBeGreaterThan(18)
  expect(wanted.filter(({ example }) => example === undefined).map(({ name }) => name)).toEqual([])
})

test('the examples of the client calls pass the type check', () => {
  const folder = join(ROOT, 'test/artefacts/examples')
  mkdirSync(folder, { recursive: true })
  const given = `import { readFileSync } from 'node:fs'
import { Purser, PurserPlatform, type Jwks, type Receipt, verifyReceipt, verifyWebhook } from '../../../api/client/main.ts'
declare const purser: Purser; declare const platform: PurserPlatform; declare const paymentHeader: string
declare const receipt: Receipt; declare const request: Request
void [readFileSync, Purser, PurserPlatform, verifyReceipt, verifyWebhook, purser, platform, paymentHeader, receipt, request]
`
  const programs = wanted.filter(({ name }) => /^(?:calls|verify)/.test(name))
  for (const [n, { example }] of programs.entries()) {
    writeFileSync(
      join(folder, `${n}.ts`),
      `${given}export async function example() {\n${example}\n}\n`,
    )
  }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../../tsconfig.json',
      compilerOptions: { noUnusedLocals: false },
      include: ['*.ts'],
      exclude: [],
    }),
  )
  const { stdout } = Bun.spawnSync([join(ROOT, 'node_modules/.bin/tsc'), '-p', folder, '--noEmit'])
  rmSync(folder, { recursive: true, force: true })
  expect(stdout.toString()).toBe('')
})
