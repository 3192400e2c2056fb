import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keptKey } from '../../../sql/keyring/keptKey.ts'
import { isNotReady } from '../../../sql/keyring/keyring.ts'

const MODULE = join(import.meta.dir, '../../../sql/keyring/keptKey.ts')
/** Holds a script that waits for the file `go`, and then prints the generated key of a folder. */
const PROGRAM = `
  const { existsSync } = require('node:fs')
  const { keptKey } = await import(process.env.MODULE)
  process.stdout.write('ready ')
  while (!existsSync(process.env.FOLDER + '/go'));
  process.stdout.write(keptKey({ dataDir: process.env.FOLDER, production: false }, 'key'))
`

test('processes that generate a development key at the same time all use the same key', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'purser-key-'))
  try {
    const env = { ...process.env, MODULE, FOLDER: folder }
    const children = Array.from({ length: 4 }, () =>
      Bun.spawn([process.execPath, '-e', PROGRAM], { env, stdout: 'pipe', stderr: 'pipe' }),
    )
    const outputs = children.map(async (child) => {
      let output = ''
      for await (const chunk of child.stdout) {
        output += Buffer.from(chunk).toString()
        if (output === 'ready ' && ++ready === children.length) writeFileSync(`${folder}/go`, '')
      }
      return output
    })
    let ready = 0
    const keys = (await Promise.all(outputs)).map((output) => output.replace('ready ', ''))
    const key = keptKey({ dataDir: folder, production: false }, 'key')
    expect(key).toMatch(/^development:[A-Za-z0-9+/]{43}=$/)
    expect(keys).toEqual(children.map(() => key))
    expect(readdirSync(folder).toSorted()).toEqual(['go', 'key'])
    expect(statSync(join(folder, 'key')).mode & 0o777).toBe(0o600)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('in production the service generates no development key', () => {
  const generate = () => keptKey({ dataDir: tmpdir(), production: true }, 'key')
  expect(generate).toThrow('production has no generated key')
})

test('a database counts as not ready only if it is unreachable, or if it lacks a table or a column', () => {
  for (const [code, isReadiness] of [
    ['ECONNREFUSED', true],
    ['42P01', true],
    ['42703', true],
    ['23505', false],
  ] as const) {
    expect([code, isNotReady(Object.assign(new Error('x'), { code }))]).toEqual([code, isReadiness])
  }
})
