/** Lists the reasons why the result of a request with a secret lacks the body of the HTTP response. */
export const BODY_OMITTED = [
  'too-large',
  'partial',
  'not-text',
  'unknown-encoding',
  'too-many-layers',
  'too-slow',
  'masking-failed',
] as const

/**
 * Describes the HTTP response to a request with a secret, after the masking. It then shows the secret in no encoding
 * that the masker can decode.
 */
export type UseAnswer = {
  status: number
  statusText: string
  /**
   * Holds the headers of the HTTP response with names in lower case. A comma joins the values of several headers with
   * the same name. A line break joins the values of several cookies.
   */
  headers: Record<string, string>
  body: string | null
  bodyOmitted: (typeof BODY_OMITTED)[number] | null
}
