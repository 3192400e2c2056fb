import { Type as t } from '@sinclair/typebox'

const MAX_LENGTH = 100

/** Describes a name that a person types: one line of 1 to 100 characters. */
export const OneLine = t.String({
  minLength: 1,
  maxLength: MAX_LENGTH,
  pattern: '^[^\\x00-\\x1f\\x7f]*$',
  error: `be one line of 1 to ${MAX_LENGTH} characters`,
})
