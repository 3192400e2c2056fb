/**
 * Returns the CPU time that `work` takes, in milliseconds. The CPU time of other processes is not counted, so that no
 * test fails because the machine is busy.
 */
export function cpuMsOf(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
