/** Tests which HTTP error a mail provider gets for each SMTP reply of the listener. */
import { expect, test } from 'bun:test'
import { SmtpReply } from '../../../../api/smtp/acceptance.ts'
import { HttpRefusal, refusalResponse, toRefusal } from '../../../../api/smtp/http/httpAnswer.ts'

test.each([
  [552, 413],
  [550, 404],
  [554, 404],
  [500, 404],
  [499, 503],
  [452, 503],
  [450, 503],
])(
  'an SMTP reply with the code %i becomes an HTTP response with the status %i',
  (reply, status) => {
    expect(toRefusal(new SmtpReply(reply, 'text'))).toMatchObject({ status, message: 'text' })
  },
)

test('if the listener fails with an internal error, the mail provider does not see the message of this error', () => {
  const refusal = new HttpRefusal(401, 'text')
  expect(toRefusal(refusal)).toBe(refusal)
  for (const error of [new Error('secret'), 'secret', null]) expect(toRefusal(error)).toBeNull()
})

test('only a refusal with the status 503 has a Retry-After header, which asks the mail provider to send the mail again', async () => {
  const bodies: unknown[] = []
  const waits: (string | null)[] = []
  for (const status of [503, 413, 418]) {
    const response = refusalResponse(new HttpRefusal(status, 'text'))
    expect(response.status).toBe(status)
    bodies.push(await response.json())
    waits.push(response.headers.get('retry-after'))
  }
  expect(bodies).toEqual([
    { error: 'unavailable', message: 'text', status: 503 },
    { error: 'payload_too_large', message: 'text', status: 413 },
    { error: 'bad_request', message: 'text', status: 418 },
  ])
  expect(waits).toEqual(['30', null, null])
})
