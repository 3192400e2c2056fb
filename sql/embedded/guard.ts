import { type ChildProcess, spawn } from 'node:child_process'

/** After the first signal the guarded process has this many seconds to end by itself. */
const PATIENCE_S = 15

/**
 * Waits for the end of its standard input. The standard input is a pipe whose other end only the guarding process
 * holds. The system closes the pipe however that process ends, even by SIGKILL.
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
 * Ends a child that would outlive this process. A guard process reads a pipe from this process, and interrupts the
 * child when the pipe ends.
 * @param account is the system user of the child process. If `account` is absent, the child process has the user of
 * this process.
 */
export function guard(child: ChildProcess, account?: { uid: number; gid: number }): void {
  if (child.pid === undefined) return
  const watcher = spawn('/bin/sh', ['-c', SCRIPT, 'guard', String(child.pid)], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    // The guard process has its own process group. Otherwise a signal to the group of this process would end the guard
    // first.
    detached: true,
    ...account,
  })
  watcher.on('error', () => {})
  watcher.stdin?.on('error', () => {})
  watcher.unref()
  // The guard is killed when the child ends, because another process may get the child's number.
  child.once('exit', () => watcher.kill('SIGKILL'))
}
