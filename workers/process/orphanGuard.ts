/**
 * Is a thread of a child process. It kills the process when the parent has died.
 *
 * The parent limits the processor time and the memory of a child. A parent that was killed limits its children no
 * more. A hostile file then kept its child busy, so the child never saw the end of its channel, and took 11 GB of memory.
 */
const CHECK_MS = 1_000
const parent = process.ppid

setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL')
}, CHECK_MS)
