import { type ChildProcess, spawn } from 'node:child_process'

/** Sets how many seconds the guarded process has to end by itself after SIGINT. */
const PATIENCE_S = 15

/**
 * Holds the shell script of the guard process, which waits for the end of its standard input. The standard input of the
 * guard process is a pipe, and only the service holds the other end of the pipe. When the service ends, even by
 * SIGKILL, the operating system closes the pipe.
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
    // The guard process has its own process group. If the guard process were in the group of this process, a signal to
    // the group would end the guard process first.
    detached: true,
    ...account,
  })
  watcher.on('error', () => {})
  watcher.stdin?.on('error', () => {})
  watcher.unref()
  // When the child process ends, the guard process is killed, because another process may later get the child's process
  // id.
  child.once('exit', () => watcher.kill('SIGKILL'))
}
