import { type ChildProcess, spawn } from 'node:child_process'

/** Sets the number of seconds that the guarded process has to end by itself after the first signal. */
const PATIENCE_S = 15

/**
 * The guard process waits for the end of its standard input. The guard's standard input is a pipe, and only the guarded
 * service holds the other end of the pipe. The operating system closes this pipe however the service ends, even by
 * SIGKILL.
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
 * Makes sure that a child process does not outlive this process. A guard process reads a pipe from this process, and
 * interrupts the child when the pipe ends.
 * @param account is the system user of the child process. If `account` is absent, the child process runs as the user of
 * this process.
 */
export function guard(child: ChildProcess, account?: { uid: number; gid: number }): void {
  if (child.pid === undefined) return
  const watcher = spawn('/bin/sh', ['-c', SCRIPT, 'guard', String(child.pid)], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    // The guard process has its own process group. If the guard process had the group of this process, a signal to the
    // group would end the guard first.
    detached: true,
    ...account,
  })
  watcher.on('error', () => {})
  watcher.stdin?.on('error', () => {})
  watcher.unref()
  // The guard is killed when the child ends, because another process may later get the child's process id.
  child.once('exit', () => watcher.kill('SIGKILL'))
}
