/** Tests which header fields a caller may add to a mail. */
import { describe, expect, test } from 'bun:test'
import { customFields, readCustomHeaders } from '../../../../shared/mail/compose/customHeaders.ts'

/** Returns the error text for header fields, or null if the service accepts them. */
function fault(given: Record<string, string>, withUnsubscribe = false): string | null {
  const read = readCustomHeaders(given, withUnsubscribe)
  return 'error' in read ? read.error : null
}

test('the service returns accepted extra header fields unchanged', () => {
  const given = { 'X-Tide': 'high', 'List-Id': '<a.example>', 'auto-submitted': 'no' }
  expect(readCustomHeaders(given, true)).toEqual({ headers: given })
  expect(readCustomHeaders({}, false)).toEqual({ headers: {} })
})

test('a caller may add at most twenty header fields to a mail', () => {
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_one, n) => [`X-${n}`, 'v']))
  expect(fault(fields(20))).toBeNull()
  expect(fault(fields(21))).toBe('headers must name at most 20 fields')
})

describe('an extra header field is refused if its name is forbidden, too long or used twice', () => {
  test('the name of an extra header field has at most 76 letters, digits and hyphens', () => {
    const text = 'headers must be named by at most 76 letters, digits and hyphens'
    expect(fault({ ['X-'.padEnd(76, 'a')]: 'v' })).toBeNull()
    for (const name of ['', 'X-'.padEnd(77, 'a'), 'X-a:b', 'X-a b', 'X-ä', 'X-a\r\nBcc']) {
      expect(fault({ [name]: 'v' })).toBe(text)
    }
  })

  test.each(['Bcc', 'From', 'Subject', 'X-', 'List-', 'X', 'Auto-Submitted-2', 'My-X-Tide'])(
    'the name of a header field may not be %s',
    (name) => {
      expect(fault({ [name]: 'v' })).toBe(`headers.${name} must be X-*, List-* or Auto-Submitted`)
    },
  )

  test.each([
    'X-SMTPAPI',
    'x-msys-api',
    'X-MC-BccAddress',
    'X-SES-CONFIGURATION-SET',
    'X-MQ-Envelope',
    'X-Job',
  ])(
    'a caller may not add the header field %s, because a mail relay reads it as a command',
    (name) => {
      expect(fault({ [name]: 'v' })).toBe(
        `headers.${name} must not be a field that mail relays read as a command`,
      )
    },
  )

  test.each(['X-Job-Id', 'X-Smtpapi-Id', 'X-Mcc', 'X-Envid-2', 'X-Order'])(
    'a caller may add the header field %s, which is no command of a mail relay',
    (name) => {
      expect(fault({ [name]: 'v' })).toBeNull()
    },
  )

  test('the name of a header field may be used only once, in any letter case', () => {
    expect(fault({ 'X-Tide': 'a', 'x-tide': 'b' })).toBe(
      'headers.x-tide must differ from the earlier ones',
    )
  })

  test('if a send request sets unsubscribe, its extra header fields may not include List-Unsubscribe or List-Unsubscribe-Post', () => {
    for (const name of ['List-Unsubscribe', 'list-unsubscribe-post']) {
      expect(fault({ [name]: 'v' }, true)).toBe(`headers.${name} must not stand beside unsubscribe`)
      expect(fault({ [name]: 'v' })).toBeNull()
    }
    expect(fault({ 'List-Unsubscribe-Posts': 'v', 'X-List-Unsubscribe': 'v' }, true)).toBeNull()
  })
})

test('the value of a header field is one line of 1 to 900 visible ASCII characters', () => {
  for (const value of ['v', '!', '~', 'a b', 'v'.repeat(900)]) {
    expect(fault({ 'X-Tide': value })).toBeNull()
  }
  const text = 'headers.X-Tide must be one line of 1 to 900 visible ASCII characters'
  for (const value of ['', ' ', ' v', 'v ', 'a\nb', 'v\r\n', 'a\tb', 'ä', 'v'.repeat(901)]) {
    expect(fault({ 'X-Tide': value })).toBe(text)
  }
})

test('each extra header field is written on a separate line', () => {
  expect(customFields({ 'X-A': '1', 'List-Id': '<b>' })).toBe('X-A: 1\r\nList-Id: <b>\r\n')
  expect(customFields({})).toBe('')
})
