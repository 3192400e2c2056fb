/**
 * Runs as a separate guard thread of a child process. The guard thread kills the child process when the parent process
 * has died.
 *
 * The parent process limits the processor time and the memory of a child process. If the parent process is killed, it
 * can no longer limit its child processes. Without the guard thread, a hostile file kept a child process so busy that
 * the process did not notice that its parent had ended. Without the guard thread, the busy child process took 11 GB of
 * memory.
 */
const CHECK_MS = 1_000
const parent = process.ppid

setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL')
}, CHECK_MS)
