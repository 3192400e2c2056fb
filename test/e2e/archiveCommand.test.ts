/** Runs the command of docs/operating.md with which PostgreSQL archives its WAL. */
import { afterAll, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { archiveCommand } from './restore/databases.ts'

const folder = mkdtempSync(join(tmpdir(), 'purser-archive-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const archive = join(folder, 'wal')
mkdirSync(archive)
const SEGMENT = Buffer.alloc(1024 * 1024, 'wal')

/** Archives a WAL file as PostgreSQL does. @returns whether PostgreSQL takes the file as archived. */
function run(name: string, segment: Buffer, before = ''): boolean {
  writeFileSync(join(folder, name), segment)
  const command = archiveCommand(archive).replaceAll('%p', name).replaceAll('%f', name)
  return spawnSync('sh', ['-c', `${before}${command}`], { cwd: folder }).status === 0
}
const archived = (name: string) => readFileSync(join(archive, name))

test('if a full disk interrupted the archiving of a WAL file, the next try archives the whole file', () => {
  const name = '000000010000000000000001'
  // The file size limit interrupts the copy of the WAL file in the middle, as a full disk does.
  expect(run(name, SEGMENT, 'ulimit -f 100; ')).toBe(false)
  expect(run(name, SEGMENT)).toBe(true)
  expect(archived(name).equals(SEGMENT)).toBe(true)
})

test('PostgreSQL may archive a file again after a crash, but nothing overwrites a different file', () => {
  const name = '000000010000000000000002'
  expect([run(name, SEGMENT), run(name, SEGMENT)]).toEqual([true, true])
  expect(run(name, Buffer.alloc(1024, 'other'))).toBe(false)
  expect(archived(name).equals(SEGMENT)).toBe(true)
})
