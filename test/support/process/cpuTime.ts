/**
 * Returns the CPU time of `work` in milliseconds. The time of other processes does not count, so that no test fails
 * because the machine is busy.
 */
export function cpuMsOf(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
