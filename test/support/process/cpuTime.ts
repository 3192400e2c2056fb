/** Returns the CPU time of `work` in milliseconds. Other processes do not count, so a busy machine fails no test. */
export function cpuMsOf(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
