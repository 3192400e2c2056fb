import { expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { unprivilegedAccount } from '../../../sql/embedded/binaries.ts'
import { startEmbeddedPostgres } from '../../../sql/embedded/embeddedPostgres.ts'
import { printed, startCommand } from '../../support/process/process.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const PROGRAM = `
  import { startEmbeddedPostgres } from './sql/embedded/embeddedPostgres.ts'
  await startEmbeddedPostgres({ dataDir: process.argv.at(-1), durable: false, onLog: () => {} })
  console.log('started')
  setInterval(() => {}, 1000)`

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('if the process that started PostgreSQL is killed with kill −9, PostgreSQL ends soon afterwards', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-guard-'))
  try {
    await using owner = startCommand([process.execPath, '-e', PROGRAM, dataDir], {})
    await printed(owner, /started/)
    const pidFile = join(dataDir, 'postgres', 'postmaster.pid')
    const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0])
    expect(isAlive(pid)).toBe(true)
    owner.child.kill('SIGKILL')
    await waitFor('the end of PostgreSQL', () => !isAlive(pid))
    // PostgreSQL removes its pid file only at a clean shutdown, so the next start needs no crash recovery.
    expect(existsSync(pidFile)).toBe(false)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

/** Returns the process ids of the children of a process (proc_pid_task_children(5)). */
const childrenOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
      .split(' ')
      .filter(Boolean)
      .map(Number),
  )

test.skipIf(!existsSync('/proc/self/task'))(
  'PostgreSQL starts although a power failure ended its very first start',
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'purser-guard-'))
    try {
      await using owner = startCommand([process.execPath, '-e', PROGRAM, dataDir], {})
      const pid = owner.child.pid!
      await waitFor('the first file of the cluster', () =>
        readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).some((file) =>
          /^postgres[^/]*\/PG_VERSION$/.test(file),
        ),
      )
      const initdb = childrenOf(pid).filter((child) =>
        readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('initdb'),
      )
      expect(initdb).toHaveLength(1)
      owner.child.kill('SIGKILL')
      process.kill(-initdb[0]!, 'SIGKILL')
      await owner.exited
      await using next = startCommand([process.execPath, '-e', PROGRAM, dataDir], {})
      await printed(next, /started/)
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  },
)

test('a start of the service does not kill another program that now has the process id of an earlier PostgreSQL', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-guard-'))
  try {
    // The command line of the program names another PostgreSQL cluster, so the start must not kill this program.
    await using other = startCommand(['bash', '-c', 'exec -a /usr/bin/postgres sleep 100'], {})
    const pid = other.child.pid!
    const cluster = join(dataDir, 'postgres')
    mkdirSync(cluster)
    writeFileSync(join(cluster, 'postmaster.pid'), `${pid}\n${cluster}\n`)
    await using start = startCommand([process.execPath, '-e', PROGRAM, dataDir], {})
    await printed(start, /started/)
    expect(other.child.signalCode).toBeNull()
    expect(isAlive(pid)).toBe(true)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test.skipIf(!existsSync('/proc/self'))(
  'PostgreSQL starts if another program of the same user now has the process id of an earlier PostgreSQL',
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'purser-guard-'))
    const account = userInfo().uid === 0 ? unprivilegedAccount() : {}
    // PostgreSQL respects a lock file only if the process with the id in the file belongs to the same user.
    const other = spawn('sleep', ['100'], { cwd: '/', stdio: 'ignore', ...account })
    try {
      const start = () => startEmbeddedPostgres({ dataDir, durable: false, onLog() {} })
      await (await start()).stop()
      const cluster = join(dataDir, 'postgres')
      writeFileSync(join(cluster, 'postmaster.pid'), `${other.pid}\n${cluster}\n`)
      await (await start()).stop()
      expect(other.signalCode).toBeNull()
      expect(isAlive(other.pid!)).toBe(true)
    } finally {
      other.kill('SIGKILL')
      rmSync(dataDir, { recursive: true, force: true })
    }
  },
)
