import type { z } from 'zod'

/** One line with the variable's name. It never holds the value, which can be a key or hold a password. */
export function describeIssue(
  issue: z.core.$ZodIssue,
  given: Record<string, string | undefined>,
): string {
  const name = String(issue.path[0])
  const is = name in given ? 'its value' : 'it is missing, and'
  const reason = /^must /.test(issue.message) ? issue.message : `must satisfy: ${issue.message}`
  return `${name}: ${is} ${reason}`
}
