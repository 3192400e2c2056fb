/** Tests which delivery outcome each recipient gets for an SMTP reply. */
import { expect, test } from 'bun:test'
import {
  allOf,
  isRefusal,
  outcomesOfFailure,
  outcomesOfSuccess,
  type SmtpFailure,
} from '../../../../workers/mail/outbound/smtpOutcome.ts'

const failure = (more: Partial<SmtpFailure>): SmtpFailure =>
  Object.assign(new Error('failed'), more)
const stateOf = (more: Partial<SmtpFailure>) =>
  outcomesOfFailure(['a@x.test'], failure(more))[0]!.state

test('a message fails after an SMTP reply 5xx, and is deferred after an SMTP reply 4xx or without any reply', () => {
  expect(stateOf({ responseCode: 550, command: 'RCPT TO' })).toBe('failed')
  expect(stateOf({ responseCode: 500, command: 'DATA' })).toBe('failed')
  expect(stateOf({ responseCode: 554 })).toBe('failed')
  expect(stateOf({ responseCode: 499, command: 'DATA' })).toBe('deferred')
  expect(stateOf({ code: 'ETIMEDOUT' })).toBe('deferred')
  expect(stateOf({ code: 'EMESSAGE', command: 'MAIL FROM' })).toBe('failed')
  expect(stateOf({ code: 'ETIMEDOUT', command: 'MAIL FROM' })).toBe('deferred')
  for (const command of ['MAIL FROM', 'DATA']) {
    expect(stateOf({ code: 'EMESSAGE', command, responseCode: 452 })).toBe('deferred')
  }
})

test('a message is deferred if the mail host refuses the connection greeting, the login or TLS', () => {
  for (const command of ['CONN', 'EHLO', 'HELO', 'AUTH PLAIN', 'STARTTLS']) {
    expect([command, stateOf({ responseCode: 554, command })]).toEqual([command, 'deferred'])
  }
  for (const code of ['EAUTH', 'ETLS']) {
    for (const responseCode of [535, 554]) {
      expect([code, stateOf({ responseCode, code })]).toEqual([code, 'deferred'])
    }
  }
})

test('a message is deferred if the mail host demands TLS or a login, because this does not refuse the message itself', () => {
  for (const responseCode of [530, 534, 535, 538]) {
    const at = (command: string) => stateOf({ responseCode, command, code: 'EENVELOPE' })
    expect([at('MAIL FROM'), at('RCPT TO'), at('DATA')]).toEqual([
      'deferred',
      'deferred',
      'deferred',
    ])
  }
  for (const responseCode of [550, 553, 554]) {
    expect(stateOf({ responseCode, command: 'MAIL FROM', code: 'EENVELOPE' })).toBe('failed')
  }
})

test('each recipient of a message has a separate outcome and a separate SMTP reply', () => {
  const rejectedErrors = [
    {
      ...failure({ responseCode: 550, command: 'RCPT TO', response: '550 5.1.1 no such user' }),
      recipient: 'b@x.test',
    },
  ] as NonNullable<SmtpFailure['rejectedErrors']>
  const gone = {
    address: 'b@x.test',
    noSuchMailbox: true,
    state: 'failed',
    error: '550 5.1.1 no such user',
  } as const
  expect(outcomesOfSuccess(['a@x.test', 'b@x.test'], rejectedErrors)).toEqual([
    { address: 'a@x.test', state: 'sent', error: null },
    gone,
  ])
  const all = failure({ responseCode: 451, response: '451 later', rejectedErrors })
  expect(outcomesOfFailure(['a@x.test', 'b@x.test'], all)).toEqual([
    { address: 'a@x.test', state: 'deferred', error: '451 later' },
    gone,
  ])
})

test('only the SMTP reply to RCPT can report a missing mailbox', () => {
  const said = { responseCode: 550, response: '550 5.1.1 no such user' }
  expect(outcomesOfFailure(['a@x.test'], failure({ ...said, command: 'DATA' }))[0]).toEqual({
    address: 'a@x.test',
    state: 'failed',
    error: said.response,
  })
})

test('an SMTP reply is stored as one line of limited length, and the limit never cuts a character in two', () => {
  const [told] = allOf(['a@x.test'], 'failed', ` a\r\n\tb\0c ${'x'.repeat(600)}`)
  expect(told?.error).toBe(`a b c ${'x'.repeat(494)}`)
  expect(allOf(['a@x.test'], 'failed', `${'x'.repeat(499)}😀`)[0]?.error).toBe(
    `${'x'.repeat(499)}\ufffd`,
  )
})

test('the connection to a mail host stays open after the refusal of a message, unless the mail host replies 421', () => {
  const cases: [code: string, responseCode: number | undefined, isOpen: boolean][] = [
    ['EENVELOPE', 550, true],
    ['EMESSAGE', 552, true],
    ['EMESSAGE', undefined, true],
    ['EENVELOPE', 421, false],
    ['EMESSAGE', 421, false],
    ['ECONNECTION', 550, false],
    ['EAUTH', 535, false],
  ]
  const refusal = (code: string, responseCode: number | undefined) =>
    failure({ code, ...(responseCode === undefined ? {} : { responseCode }) })
  for (const [code, responseCode, isOpen] of cases)
    expect([code, responseCode, isRefusal(refusal(code, responseCode))]).toEqual([
      code,
      responseCode,
      isOpen,
    ])
})
