/** Tests each rule by which the service reads a bounce in free text. */
import { describe, expect, test } from 'bun:test'
import type { Attachment, Email } from 'postal-mime'
import { readBounce } from '../../../../shared/mail/parse/dsn.ts'

const ADA = 'ada@b.example'
const DAEMON = 'mailer-daemon@b.example'

type Given = { from?: Email['from']; headers?: Record<string, string>; attachments?: Attachment[] }

const part = (mimeType: string, content: string | Uint8Array): Attachment =>
  ({ mimeType, content }) as Attachment
function read(
  text: string,
  { from = { name: '', address: DAEMON }, headers = {}, attachments = [] }: Given = {},
) {
  const fields = Object.entries(headers).map(([key, value]) => ({ key, value }))
  return readBounce({ from, headers: fields, attachments, text } as unknown as Email)
}
const recipients = (text: string, given: Given = {}) => read(text, given)?.recipients ?? null
const addresses = (text: string, given: Given = {}) =>
  recipients(text, given)?.map((one) => one.addresses[0]!) ?? null
const FAILED = `${ADA}: 550 5.1.1 no such user`

describe('a bounce in free text is recognised by its sender and its words', () => {
  const person = { name: 'Cy', address: 'cy@c.example' }

  test('a bounce in free text counts only if its address, its name or its empty Return-Path shows a mail system as sender', () => {
    expect(addresses(FAILED)).toEqual([ADA])
    expect(addresses(FAILED, { from: { name: 'Postmaster', address: 'x@b.example' } })).toEqual([
      ADA,
    ])
    expect(addresses(FAILED, { from: person, headers: { 'return-path': ' <> ' } })).toEqual([ADA])
    expect(
      addresses(FAILED, { from: person, headers: { 'return-path': '<cy@c.example>' } }),
    ).toBeNull()
    expect(addresses(FAILED, { from: person })).toBeNull()
  })

  test('a bounce in free text must have a status code, or must both return the message and report a failure', () => {
    const vague = `Delivery to ${ADA} failed.`
    expect(addresses(vague)).toBeNull()
    expect(addresses(`${vague}\n\nReceived: from x`)).toEqual([ADA])
    const returned = [part('message/rfc822', 'Subject: x')]
    expect(addresses(vague, { attachments: returned })).toEqual([ADA])
    expect(addresses(`Greetings to ${ADA}.`, { attachments: returned })).toBeNull()
    expect(addresses(`Greetings to ${ADA}.`)).toBeNull()
  })

  test('a person’s automatic reply with a telephone number is no bounce, even if its Return-Path is empty', () => {
    const away = 'I am away until 12 May. Call me at +1 415 555 0100, or write to bob@c.example.'
    expect(addresses(away, { from: person, headers: { 'return-path': '<>' } })).toBeNull()
    expect(addresses('bob@c.example: 550 no such user')).toEqual(['bob@c.example'])
  })

  test('a bounce in free text may name its recipients in X-Failed-Recipients, whoever sent the bounce', () => {
    const given = { from: person, headers: { 'x-failed-recipients': `${ADA}, b@b.example` } }
    expect(read('Sorry', given)).toMatchObject({ isReport: true })
    expect(recipients('5.2.2 mailbox full', given)).toEqual(
      [ADA, 'b@b.example'].map((address) => ({
        addresses: [address],
        action: 'failed',
        status: '5.2.2',
        diagnostic: '5.2.2 mailbox full',
      })),
    )
    expect(recipients(`5.2.2 ${FAILED}`, given)![0]).toMatchObject({
      status: '5.1.1',
      diagnostic: FAILED,
    })
    expect(read(FAILED)!.isReport).toBe(false)
  })
})

describe('the recipients and their statuses are read from a bounce in free text', () => {
  test('the recipients of a bounce in free text exclude the bounce’s sender and other addresses of the mail system', () => {
    const from = { name: 'postmaster', address: 'Robot@b.example' }
    expect(addresses(`robot@b.example says: ${FAILED}`, { from })).toEqual([ADA])
    expect(addresses(`Ask postmaster@b.example. ${FAILED}`)).toEqual([ADA])
  })

  test('each recipient of a bounce in free text gets the first status that follows the address', () => {
    const status = (text: string) => recipients(text)!.map((one) => one.status)
    expect(status(`${ADA} is known.\n${FAILED}`)).toEqual(['5.1.1'])
    expect(status(`${FAILED}\n${ADA}: 552 5.2.2 full`)).toEqual(['5.1.1'])
    expect(status(`${FAILED}\n${ADA} again`)).toEqual(['5.1.1'])
    expect(status(`${ADA}: error 421 busy`)).toEqual(['4.0.0'])
  })

  test('the recipients of a bounce in free text are read only before the returned message and outside of quoted lines', () => {
    expect(addresses(`${FAILED}\n\nFrom: b@c.example`)).toEqual([ADA])
    expect(addresses(`> b@c.example\n${FAILED}`)).toEqual([ADA])
  })

  test('the recipients of a bounce in free text count as delayed if the mail host says that it keeps trying', () => {
    expect(recipients(`${ADA}: 451 4.2.0, will retry`)![0]!.action).toBe('delayed')
    expect(recipients(FAILED)![0]!.action).toBe('failed')
  })
})

test('a line without a name before its colon is not a field of a bounce report', () => {
  const report = `Final-Recipient: rfc822; ${ADA}\nAction: failed\n: x\nStatus: 5.1.1\n`
  for (const content of [report, new TextEncoder().encode(report)]) {
    expect(recipients('', { attachments: [part('message/delivery-status', content)] })).toEqual([
      { addresses: [ADA], action: 'failed', status: '5.1.1', diagnostic: '' },
    ])
  }
})

test('a bounce’s status is read from the diagnostic text only if the status field is missing or vague', () => {
  const status = (given: string) => {
    const report = `Final-Recipient: rfc822; ${ADA}\nAction: failed\n${given}Diagnostic-Code: smtp; 550 5.2.2 full\n`
    return recipients('', { attachments: [part('message/delivery-status', report)] })![0]!.status
  }
  expect(status('')).toBe('5.2.2')
  expect(status('Status: 5.0.0\n')).toBe('5.2.2')
  expect(status('Status: 5.1.1\n')).toBe('5.1.1')
})
