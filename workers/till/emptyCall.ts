/** Describes an HTTP call of a paid endpoint that is used if the endpoint's input is not known. */
export const EMPTY_CALL = {
  GET: { method: 'GET', headers: {} },
  POST: { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' },
} as const

export type EmptyCall = (typeof EMPTY_CALL)[keyof typeof EMPTY_CALL]

/**
 * Calls a paid endpoint without a payment. Calls it again with POST after a response 404 or 405, because the endpoint
 * may accept only POST.
 */
export async function askUnpaid<Answer extends { ok: false } | { ok: true; status: number }>(
  send: (call: EmptyCall) => Promise<Answer>,
): Promise<{ answer: Answer; method: EmptyCall['method'] }> {
  const answer = await send(EMPTY_CALL.GET)
  return answer.ok && (answer.status === 404 || answer.status === 405)
    ? { answer: await send(EMPTY_CALL.POST), method: 'POST' }
    : { answer, method: 'GET' }
}
