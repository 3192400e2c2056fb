/**
 * Writes the given SQL conditions for those values that are present, with `and` before each. The function leaves out
 * the condition of an absent value, because a condition such as "null or equal" would make PostgreSQL read every row.
 * The function appends the values to the list `values`. The character `?` in a condition stands for its value.
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

/** Writes an SQL condition that a text contains a value, without regard to upper and lower case. */
export const holds = (text: string): string => `position(lower(?) in lower(${text})) > 0`
