/** Lists the reasons why an answer has no body. */
export const BODY_OMITTED = [
  'too-large',
  'partial',
  'not-text',
  'unknown-encoding',
  'too-many-layers',
  'too-slow',
] as const

/** Is the answer to a use, without the secret in any form. */
export type UseAnswer = {
  status: number
  statusText: string
  /** Names are in lower case. The values of one name are joined by a comma, and cookies by a line break. */
  headers: Record<string, string>
  body: string | null
  bodyOmitted: (typeof BODY_OMITTED)[number] | null
}
