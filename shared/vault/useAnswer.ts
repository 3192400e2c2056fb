/** Why an answer comes without its body. */
export const BODY_OMITTED = [
  'too-large',
  'partial',
  'not-text',
  'unknown-encoding',
  'too-many-layers',
  'too-slow',
] as const

/** The answer to a use, without the secret in any form. */
export type UseAnswer = {
  status: number
  statusText: string
  /** Lower-case names; the values of one name are joined by a comma, cookies by a line break. */
  headers: Record<string, string>
  body: string | null
  bodyOmitted: (typeof BODY_OMITTED)[number] | null
}
