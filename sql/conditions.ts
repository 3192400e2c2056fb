/**
 * Writes an SQL condition for each given value, with `and` before each condition. The function leaves out the condition
 * of an absent value, because PostgreSQL's plan for "null or equal" reads every row. The function appends the values to
 * the list `values`. The character `?` in a condition stands for the condition's value.
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

/**
 * Writes an SQL condition that a text contains a value. The SQL condition ignores the difference between upper and
 * lower case.
 */
export const holds = (text: string): string => `position(lower(?) in lower(${text})) > 0`
