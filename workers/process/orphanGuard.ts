/**
 * Runs as a thread that guards a child process. This thread kills the child process when the parent process has died.
 *
 * The parent process limits the processor time and the memory of a child process, but a killed parent can no longer do
 * this. A hostile file can keep the child process so busy that the process does not notice the end of its parent.
 * Without the guard thread, such a child process took 11 GB of memory.
 */
const CHECK_MS = 1_000
const parent = process.ppid

setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL')
}, CHECK_MS)
