/**
 * The conditions of the given values, each with `and` before it. Absent ones are left out: a plan for "null or equal" reads
 * every row. Appends the values to `values`; `?` of a test stands for its value.
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

/** A test whether a text holds the value, in any case of letters. */
export const holds = (text: string): string => `position(lower(?) in lower(${text})) > 0`
