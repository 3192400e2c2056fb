import type { z } from 'zod'
import type { Fault } from './configError.ts'

/** Describes the fault of an environment variable without quoting the variable's value. */
export function describeIssue(
  issue: z.core.$ZodIssue,
  given: Record<string, string | undefined>,
): Fault {
  const variable = String(issue.path[0])
  const is = variable in given ? 'its value' : 'it is missing, and'
  const reason = /^must /.test(issue.message) ? issue.message : `must satisfy: ${issue.message}`
  return { variable, rule: `${is} ${reason}` }
}
