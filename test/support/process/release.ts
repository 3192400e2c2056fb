/** Runs an earlier version of the service from the git history of the repository. */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { printed, type ServiceProcess, startCommand } from './process.ts'

const ROOT = join(import.meta.dir, '../../..')
const git = (...args: string[]) => Bun.spawnSync(['git', ...args], { cwd: ROOT })

/**
 * Tells whether the git repository has the commit, which a shallow clone may lack. The caller must report that it skips
 * the test without the commit.
 */
export const hasCommit = (commit: string): boolean =>
  git('cat-file', '-e', `${commit}^{commit}`).exitCode === 0

/** Lists the commits that added or removed a text in a file, the latest first. */
export const changesOf = (text: string, path: string): string[] =>
  git('log', '--format=%H', `-S${text}`, '--', path).stdout.toString().split('\n').filter(Boolean)

export type Release = AsyncDisposable & {
  /**
   * Runs an entry file of the earlier version to its end. @returns the exit code, or the name of the signal that ended
   * the process
   */
  run(file: string, env: Record<string, string>): Promise<number | string>
  /**
   * Starts an entry file of the earlier version and waits until its process is ready. @returns the port, or 0 for a
   * process without a port
   */
  start(file: string, env: Record<string, string>): Promise<number>
  /** Stops all processes of the earlier version. */
  stop(): Promise<void>
}

/**
 * Unpacks a git commit into a folder. The code of the commit runs with the dependencies of the current checkout, which
 * may be newer.
 */
export function unpackRelease(commit: string): Release {
  const folder = mkdtempSync(join(tmpdir(), 'purser-release-'))
  const code = git('archive', '--format=tar', commit).stdout
  if (Bun.spawnSync(['tar', '-x', '-C', folder], { stdin: code }).exitCode !== 0)
    throw new Error(`${commit} could not be unpacked`)
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const started: ServiceProcess[] = []
  const begin = (file: string, env: Record<string, string>) =>
    startCommand([process.execPath, join(folder, file)], {
      DATA_DIR: join(folder, '.data'),
      ...env,
    })
  const stop = async () => {
    await Promise.all(started.splice(0).map((one) => one[Symbol.asyncDispose]()))
  }
  return {
    async run(file, env) {
      await using process = begin(file, env)
      return await process.exited
    },
    async start(file, env) {
      const process = begin(file, env)
      started.push(process)
      await printed(process, /"msg":"ready"/)
      return Number(/"port":(\d+)/.exec(process.stdout())?.[1] ?? 0)
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
