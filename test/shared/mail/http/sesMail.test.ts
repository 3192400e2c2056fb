/** Tests how the service reads the notifications of Amazon SES: received mails, bounces and complaints. */
import { describe, expect, test } from 'bun:test'
import { readSes } from '../../../../shared/mail/http/sesMail.ts'
import { SignedMailError } from '../../../../shared/mail/http/signedMail.ts'

type Fields = Record<string, unknown>

/** Returns the status and the message of the error that a function call throws. */
function faultOf(call: () => unknown): [number, string] | null {
  try {
    call()
    return null
  } catch (error) {
    if (error instanceof SignedMailError) return [error.status, error.message]
    throw error
  }
}

const read = (body: unknown) => readSes(JSON.stringify(body))
const words = (length: number) => 'x'.repeat(length)

function mail(receipt: Fields = {}, changes: Fields = {}) {
  const news = read({
    notificationType: 'Received',
    mail: { source: 'ada@a.example' },
    receipt: { recipients: ['box@purser.example'], action: { encoding: 'BASE64' }, ...receipt },
    content: Buffer.from('Subject: ü').toString('base64'),
    ...changes,
  })
  if (news.kind !== 'mail') throw new Error(news.kind)
  return news
}

function reports(body: Fields) {
  const news = read(body)
  if (news.kind !== 'reports') throw new Error(news.kind)
  return news.reports
}

describe('an SES notification about a received mail contains the mail, or names its object in S3', () => {
  test('a mail that Amazon SES received is read with its bytes, its sender and its recipients', () => {
    const { envelope, content, spf } = mail()
    expect(envelope).toEqual({ from: 'ada@a.example', to: ['box@purser.example'] })
    expect(content).toEqual({ bytes: Buffer.from('Subject: ü') })
    expect(spf).toBeNull()
  })

  test('if the SES rule stores a mail in S3, the notification names the mail’s object in the bucket', () => {
    const action = { type: 'S3', bucketName: 'mail', objectKey: 'in/1' }
    expect(mail({ action }, { content: undefined }).content).toEqual({
      bucket: 'mail',
      key: 'in/1',
    })
    expect(mail({ action: { type: 'S3', bucketName: 7 } }).content).toEqual({ bucket: '', key: '' })
  })

  test('a mail from Amazon SES must be encoded in Base64, and SES may write the word Base64 in any letter case', () => {
    expect(mail({ action: { type: 'SNS', encoding: 'Base64' } }).kind).toBe('mail')
    for (const action of [{ encoding: 'UTF-8' }, {}, null, { type: 's3' }])
      expect(faultOf(() => mail({ action }))).toEqual([
        400,
        'receipt.action.encoding: must be Base64; set it in the rule of SES',
      ])
  })

  test('a notification about a mail from Amazon SES must contain the mail as text', () => {
    for (const content of [undefined, 7, null])
      expect(faultOf(() => mail({}, { content }))).toEqual([400, 'content: must be a text'])
    expect(mail({}, { content: '' }).content).toEqual({ bytes: Buffer.alloc(0) })
  })

  test('a mail from Amazon SES must have a valid address among its first hundred recipients', () => {
    expect(mail({ recipients: ['no address', 7, 'box@purser.example'] }).envelope.to).toEqual([
      'box@purser.example',
    ])
    const hundred = Array<string>(99).fill('no address')
    expect(mail({ recipients: [...hundred, 'box@purser.example'] }).envelope.to).toHaveLength(1)
    for (const recipients of [
      undefined,
      [],
      'box@purser.example',
      ['no address'],
      [...hundred, 'no address', 'box@purser.example'],
    ])
      expect(faultOf(() => mail({ recipients }))).toEqual([
        400,
        'receipt.recipients: must hold addresses',
      ])
  })

  test('a mail from Amazon SES has no sender if SES names none, or if the named sender is no address', () => {
    for (const source of [undefined, '', '<>', 'no address', 7])
      expect([source, mail({}, { mail: { source } }).envelope.from]).toEqual([source, ''])
    expect(mail({}, { mail: null }).envelope.from).toBe('')
    const source = `ada+caf_=${words(60)}=purser.example@gmail.com`
    expect(mail({}, { mail: { source } }).envelope.from).toBe(source)
  })

  test.each([
    ['PASS', 'pass'],
    ['FAIL', 'fail'],
    ['GRAY', 'neutral'],
    ['PROCESSING_FAILED', 'temperror'],
    ['pass', null],
    [undefined, null],
  ] as const)(
    'if Amazon SES gives a received mail the SPF verdict %p, the mail has the SPF result %p',
    (status, spf) => {
      expect(mail({ spfVerdict: { status } }).spf).toBe(spf)
    },
  )
})

describe('an SES notification about a bounce becomes a report for each address that no longer exists', () => {
  const bounced = (bounce: Fields, mail: Fields = {}) =>
    reports({ notificationType: 'Bounce', bounce: { bounceType: 'Permanent', ...bounce }, mail })
  const gone = { emailAddress: 'gone@b.example' }

  test('for a bounce that Amazon SES reports, the service reports each address that no longer exists', () => {
    const bouncedRecipients = [
      { ...gone, status: '5.7.1', diagnosticCode: 'smtp; 550\r\n no  user ' },
      { emailAddress: 'no address' },
      { emailAddress: 7 },
      null,
      { emailAddress: 'two@b.example' },
    ]
    const [one, two, ...more] = bounced({ bouncedRecipients })
    expect(one).toMatchObject({ kind: 'bounce', address: 'gone@b.example', status: '5.7.1' })
    expect(one?.detail).toBe('smtp; 550 no user')
    expect([two?.address, two?.detail, more]).toEqual(['two@b.example', '', []])
  })

  test('a bounce from Amazon SES is not reported if the address may still exist', () => {
    for (const bounceType of ['Transient', 'Undetermined', undefined])
      expect(bounced({ bounceType, bouncedRecipients: [gone] })).toEqual([])
  })

  test('a bounce from Amazon SES has the status 5.1.1 if SES states no permanent status', () => {
    for (const status of ['4.4.7', '5.1', 'x5.1.1', '5.1.1 bad', '5.1234.1', undefined, 7])
      expect([status, bounced({ bouncedRecipients: [{ ...gone, status }] })[0]?.status]).toEqual([
        status,
        '5.1.1',
      ])
    expect(bounced({ bouncedRecipients: [{ ...gone, status: '5.123.456' }] })[0]?.status).toBe(
      '5.123.456',
    )
  })

  test('the explanation in a bounce report has at most 400 characters, taken from the first 1,000 characters that SES sends', () => {
    const detail = (diagnosticCode: string) =>
      bounced({ bouncedRecipients: [{ ...gone, diagnosticCode }] })[0]?.detail
    expect(detail(words(401))).toBe(words(400))
    expect(detail(`${' '.repeat(999)}xy`)).toBe('x')
    expect(detail(`${words(399)}🦉`)).toBe(`${words(399)}\ufffd`)
    expect(detail('550 no\0 user\u001b[0m')).toBe('550 no user [0m')
  })

  test('at most a hundred addresses of a bounce from Amazon SES are read', () => {
    expect(bounced({ bouncedRecipients: Array(101).fill(gone) })).toHaveLength(100)
    expect(bounced({ bouncedRecipients: gone })).toEqual([])
  })

  test('a bounce report names the sender without the +tag, and the Message-IDs and the envelope sender of the returned copy', () => {
    const [report] = bounced(
      { bouncedRecipients: [gone] },
      {
        source: 'box+b1+b2@purser.example',
        messageId: 'ses-1',
        headers: [
          { name: 'Subject', value: 'Hello' },
          null,
          { name: 'Message-ID', value: '<m-1@purser.example>' },
          { name: 'message-id', value: '<m-2@purser.example>' },
        ],
      },
    )
    expect(report?.from).toBe('box@purser.example')
    expect(report?.relayIds).toEqual(['ses-1'])
    expect(report?.messageIds).toEqual(['<m-1@purser.example>'])
    expect(report?.returnPaths).toEqual(['box+b1+b2@purser.example'])
  })

  test('a bounce report leaves out the Message-IDs and the envelope sender if SES does not state them', () => {
    const [report] = bounced({ bouncedRecipients: [gone] }, { source: 'no address', headers: 'x' })
    expect(report).toMatchObject({ from: 'no address', relayIds: [], messageIds: [] })
    expect(report?.returnPaths).toEqual([])
    expect(bounced({ bouncedRecipients: [gone] })[0]?.from).toBe('')
  })
})

describe('an SES notification about a complaint becomes a report about the one recipient that it names', () => {
  const ADA = { emailAddress: 'ada@a.example' }
  const complained = (complaint: Fields) =>
    reports({ notificationType: 'Complaint', complaint, mail: { messageId: 'ses-1' } })

  test('the report of an SES complaint has no status, and states the type of the complaint', () => {
    const [report] = complained({ complainedRecipients: [ADA], complaintFeedbackType: 'abuse' })
    expect(report).toMatchObject({ kind: 'complaint', address: 'ada@a.example', status: null })
    expect(report?.detail).toBe('reported by SES abuse')
    expect(report?.relayIds).toEqual(['ses-1'])
    expect(complained({ complainedRecipients: [ADA] })[0]?.detail).toBe('reported by SES')
  })

  test('an SES complaint is not reported if the recipient says that the mail is not spam', () => {
    for (const complaintFeedbackType of ['not-spam', 'auth-failure'])
      expect(complained({ complainedRecipients: [ADA], complaintFeedbackType })).toEqual([])
  })

  test('an SES complaint is not reported unless SES names exactly one address', () => {
    for (const complainedRecipients of [
      undefined,
      [],
      [{ emailAddress: 'no address' }],
      [ADA, { emailAddress: 'bob@a.example' }],
    ])
      expect(complained({ complainedRecipients })).toEqual([])
    const [report] = complained({ complainedRecipients: [{ emailAddress: 'x' }, null, ADA] })
    expect(report?.address).toBe('ada@a.example')
  })
})

test('the type of an SES notification is its notificationType, or its eventType if notificationType is missing', () => {
  expect(read({ eventType: 'Bounce', bounce: {} })).toEqual({ kind: 'reports', reports: [] })
  expect(read({ eventType: 'Complaint', complaint: {} }).kind).toBe('reports')
  expect(read({ notificationType: 'Delivery', eventType: 'Bounce' })).toEqual({ kind: 'other' })
  expect(read({ notificationType: null, eventType: 'Bounce' }).kind).toBe('reports')
})

test('a message that is not an SES notification is ignored', () => {
  for (const json of ['Hello', '', 'null', '7', '{}', '{"notificationType":7}'])
    expect([json, readSes(json)]).toEqual([json, { kind: 'other' }])
})
