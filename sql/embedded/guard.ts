import { type ChildProcess, spawn } from 'node:child_process'

/** Sets how many seconds the guarded process has to end by itself after SIGINT. */
const PATIENCE_S = 15

/**
 * Holds the shell script of the guard process, which waits for the end of its standard input. This input is a pipe, and
 * only the service holds its other end. When the service ends, even by SIGKILL, the operating system closes the pipe.
 */
const SCRIPT = `
cat >/dev/null
kill -INT "$1" 2>/dev/null || exit 0
for _ in $(seq ${PATIENCE_S * 10}); do
  sleep 0.1
  kill -0 "$1" 2>/dev/null || exit 0
done
kill -QUIT "$1"`

/**
 * Makes sure that a child process ends together with this process. A guard process reads a pipe from this process, and
 * interrupts the child process when the pipe ends.
 * @param account is the system user of the child process. If `account` is absent, the child process runs as the user of
 * this process.
 */
export function guard(child: ChildProcess, account?: { uid: number; gid: number }): void {
  if (child.pid === undefined) return
  const watcher = spawn('/bin/sh', ['-c', SCRIPT, 'guard', String(child.pid)], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    // The guard process has its own process group. A signal to the group of this process would otherwise end the guard
    // process first.
    detached: true,
    ...account,
  })
  watcher.on('error', () => {})
  watcher.stdin?.on('error', () => {})
  watcher.unref()
  // When the child process ends, the code kills the guard process, because another process may later get the child's
  // process id, and the guard process must not interrupt it.
  child.once('exit', () => watcher.kill('SIGKILL'))
}
