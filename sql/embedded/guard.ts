import { type ChildProcess, spawn } from 'node:child_process'

/** After the first signal the guarded process has this many seconds to end by itself. */
const PATIENCE_S = 15

/**
 * Waits for the end of its standard input. This is a pipe whose other end only this process holds. The system closes it
 * however the process ends, even by SIGKILL.
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
 * Ends a child that would outlive this process. A guard process reads a pipe from here, and interrupts the child when
 * the pipe ends.
 * @param account the user of the child; absent: the user of this process
 */
export function guard(child: ChildProcess, account?: { uid: number; gid: number }): void {
  if (child.pid === undefined) return
  const watcher = spawn('/bin/sh', ['-c', SCRIPT, 'guard', String(child.pid)], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    // A signal to this process group must not end the guard first.
    detached: true,
    ...account,
  })
  watcher.on('error', () => {})
  watcher.stdin?.on('error', () => {})
  watcher.unref()
  // After a process has ended, another process may get its number.
  child.once('exit', () => watcher.kill('SIGKILL'))
}
