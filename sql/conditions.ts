/**
 * Writes the SQL conditions of the given values, each with `and` before it. Conditions of absent values are left out,
 * because a plan for "null or equal" reads every row. The values are appended to `values`. `?` in a condition stands
 * for its value.
 */
export const conditions = (
  values: unknown[],
  tests: readonly (readonly [test: string, value: unknown])[],
): string =>
  tests
    .flatMap(([test, value]) =>
      value === undefined ? [] : [`and ${test.replaceAll('?', `$${values.push(value)}`)}`],
    )
    .join(' ')

/** Writes an SQL condition that a text contains the value. Upper and lower case are the same. */
export const holds = (text: string): string => `position(lower(?) in lower(${text})) > 0`
