/** Tests two runs of `bun run backup` at the same time. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPool } from '../../../sql/db.ts'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../sql/embedded/embeddedPostgres.ts'
import { startProcess } from '../../support/process/process.ts'
import '../../support/long.ts'

const folder = mkdtempSync(join(tmpdir(), 'purser-backups-'))
const dataDir = join(folder, 'data')
let server: EmbeddedPostgres
beforeAll(async () => {
  server = await startEmbeddedPostgres({ dataDir, onLog() {} })
  const pool = createPool({ url: server.url, size: 1, name: 'test' })
  await pool.query('create table rows as select n from generate_series(1, 1000) n')
  await pool.end()
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

const backUp = async (
  target?: string,
  env: Record<string, string> = {},
): Promise<{ code: number | string; error: string }> => {
  await using backup = startProcess(
    'api/operations/backupMain.ts',
    { DATA_DIR: dataDir, ...env },
    target === undefined ? [] : [target],
  )
  return { code: await backup.exited, error: backup.stderr() }
}

test('if two backups with the same name run at the same time, one is complete, and the other reports that the folder exists', async () => {
  const target = join(folder, 'backups', 'today')
  const ends = await Promise.all([backUp(target), backUp(target)])
  expect(ends.map(({ code }) => code).toSorted()).toEqual([0, 78])
  expect(ends.find(({ code }) => code === 78)?.error).toContain('today exists; name a new folder')
  expect(readdirSync(join(folder, 'backups'))).toEqual(['today'])
  const restored = await startEmbeddedPostgres({ dataDir: target, onLog() {} })
  const pool = createPool({ url: restored.url, size: 1, name: 'test' })
  const { rows } = await pool.query('select count(*)::int as count from rows')
  expect(rows).toEqual([{ count: 1_000 }])
  await pool.end()
  await restored.stop()
})

test('a backup deletes incomplete backups of its name that are older than a day, and no other folder', async () => {
  const backups = join(folder, 'more')
  const id = crypto.randomUUID()
  const [old, bare, ...kept] = [
    `a.${crypto.randomUUID()}.partial`,
    'a.partial',
    `a.${id}.partial`,
    'a.partial.txt',
    `b.${id}.partial`,
  ]
  for (const name of [old, bare, ...kept]) {
    mkdirSync(join(backups, name), { recursive: true })
    writeFileSync(join(backups, name, 'file'), 'x')
    const days = name === kept[0] ? 0 : 2
    const at = new Date(Date.now() - days * 86_400_000)
    utimesSync(join(backups, name), at, at)
  }
  expect((await backUp(join(backups, 'a'))).code).toBe(0)
  expect(readdirSync(backups).toSorted()).toEqual(['a', ...kept].toSorted())
})

test('a backup is refused and leaves no files behind, unless its folder is new and there are data to copy', async () => {
  const used = join(folder, 'used')
  mkdirSync(used)
  const target = join(folder, 'refused')
  const elsewhere = { DATABASE_URL: 'postgres://purser@127.0.0.1:1/purser', DATA_DIR: used }
  const cases: [target: string | undefined, env: Record<string, string>, error: string][] = [
    [undefined, {}, 'usage: bun run backup FOLDER'],
    ['--help', {}, 'usage: bun run backup FOLDER'],
    [used, {}, `${used} exists; name a new folder`],
    [target, { DATA_DIR: used }, 'no embedded database runs on DATA_DIR'],
    [target, elsewhere, 'DATA_DIR holds no spool'],
  ]
  const ends = await Promise.all(cases.map(([given, env]) => backUp(given, env)))
  expect(ends).toEqual(
    cases.map(([, , error]) => ({ code: 78, error: expect.stringContaining(error) })),
  )
  expect(readdirSync(folder).filter((name) => name.startsWith('refused'))).toEqual([])
})
