import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { userInfo } from 'node:os'
import { processesBelow } from '../support/process/processTree.ts'

export type Account = { uid: number; gid: number }

/** Describes a program that runs in the background, together with its child processes. */
export type Daemon = {
  /** Freezes the background program and its child processes at once, as if the machine vanished. */
  freeze(): void
  /** Kills the background program and its child processes. */
  kill(): Promise<void>
}

/** Starts a program in the background. The output of the program goes to a file. */
export function startDaemon(
  command: [program: string, ...args: string[]],
  {
    logFile,
    cwd,
    account,
    alsoPid = () => null,
  }: {
    logFile: string
    cwd: string
    account: Account | null
    /** Returns the id of a detached process that the program has started. */
    alsoPid?: () => number | null
  },
): Daemon {
  const log = openSync(logFile, 'a')
  const [program, ...args] = command
  const child: ChildProcess = spawn(program, args, {
    cwd,
    env: { PATH: '/usr/bin:/bin', HOME: cwd, LC_ALL: 'C.UTF-8', TZ: 'UTC' },
    stdio: ['ignore', log, log],
    ...(userInfo().uid === 0 && account !== null ? account : {}),
  })
  closeSync(log)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const known = new Set<number>()
  const all = () => {
    for (const root of [child.pid ?? null, alsoPid()]) {
      if (root === null) continue
      known.add(root)
      for (const { pid } of processesBelow(root)) known.add(pid)
    }
    return [...known]
  }
  const signal = (name: NodeJS.Signals) => {
    // Parent processes get the signal first, because a parent that still runs would restart its missing child.
    for (const pid of all()) {
      try {
        process.kill(pid, name)
      } catch {
        // The error means that the process has already ended, so no process gets the signal.
      }
    }
  }
  return {
    freeze: () => signal('SIGSTOP'),
    async kill() {
      signal('SIGKILL')
      await ended
    },
  }
}
