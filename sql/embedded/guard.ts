import { type ChildProcess, spawn } from 'node:child_process'

/** The guarded process gets this time to end by itself after the first signal, seconds. */
const PATIENCE_S = 15

/**
 * Waits for the end of its standard input, a pipe whose other end only this process holds. The system closes it at any kind of end,
 * SIGKILL included.
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
 * Ends a child that would outlive this process: a guard reads a pipe from here, and interrupts the child when the pipe ends.
 * @param account the user of the child; absent: the same as of this process
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
  // Another process may get the number of one that has ended.
  child.once('exit', () => watcher.kill('SIGKILL'))
}
