/** Tests the webhooks of Postmark: their URL, the proof of their origin, and the content that each webhook reports. */
import { describe, expect, test } from 'bun:test'
import {
  postmarkAddress,
  postmarkKeyId,
  provePostmark,
  readPostmark,
} from '../../../../shared/mail/http/postmarkMail.ts'
import { SignedMailError } from '../../../../shared/mail/http/signedMail.ts'

const SECRET = Buffer.from('a secret of thirty-two characters')
const OTHER = Buffer.from('another secret')
const KEY = 'inbound.example/ü'

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

/** Returns the webhook request that Postmark sends to an address. */
function requestTo(address: string): { pathname: string; authorization: string } {
  const { pathname, username, password } = new URL(address)
  const login = Buffer.from(`${username}:${password}`).toString('base64')
  return { pathname, authorization: `Basic ${login}` }
}

const read = (body: unknown) => readPostmark(JSON.stringify(body))
const words = (length: number) => 'x'.repeat(length)

describe('the service makes a secret URL for a Postmark webhook', () => {
  const address = postmarkAddress('https://purser.example/base?x=1', KEY, SECRET)

  test('the URL of a Postmark webhook contains the user purser, a password, the key id and a secret path segment', () => {
    const { host, username, password, pathname } = new URL(address)
    expect([host, username]).toEqual(['purser.example', 'purser'])
    expect(password).toMatch(/^[\da-f]{32}$/)
    const id = Buffer.from(KEY).toString('base64url')
    expect(pathname).toMatch(new RegExp(`^/v0/inbound/postmark/${id}/[\\da-f]{32}$`))
    expect(pathname).not.toContain(password)
  })

  test('the URL of a Postmark webhook differs for each key and each secret', () => {
    const all = [
      requestTo(address),
      requestTo(postmarkAddress('https://purser.example', 'key-2', SECRET)),
      requestTo(postmarkAddress('https://purser.example', KEY, OTHER)),
    ]
    expect(new Set(all.map(({ authorization }) => authorization)).size).toBe(3)
    expect(new Set(all.map(({ pathname }) => pathname.slice(-32))).size).toBe(3)
  })

  test('the service reads the key id from the path of a Postmark webhook’s URL, and refuses a malformed path', () => {
    expect(postmarkKeyId(new URL(address).pathname)).toBe(KEY)
  })

  test('the path of a Postmark webhook contains a key id of 1 to 400 base64url characters, and 32 hexadecimal digits', () => {
    const pathOf = (id: string, part = 'a'.repeat(32)) => `/v0/inbound/postmark/${id}/${part}`
    expect(postmarkKeyId(pathOf('eA'))).toBe('x')
    expect(postmarkKeyId(pathOf('e'.repeat(400)))).not.toBeNull()
    for (const path of [
      pathOf(''),
      pathOf('e'.repeat(401)),
      pathOf('e+'),
      pathOf('eA', 'a'.repeat(31)),
      pathOf('eA', 'a'.repeat(33)),
      pathOf('eA', 'A'.repeat(32)),
      `${pathOf('eA')}/`,
      `/x${pathOf('eA')}`,
      '/v0/inbound/raw',
    ])
      expect([path, postmarkKeyId(path)]).toEqual([path, null])
  })
})

describe('a Postmark webhook is accepted only with the right password and path', () => {
  const right = requestTo(postmarkAddress('https://purser.example', KEY, SECRET))
  const other = requestTo(postmarkAddress('https://purser.example', KEY, OTHER))
  const prove = (changes: Partial<typeof right> = {}, secrets = [SECRET]) =>
    faultOf(() => provePostmark({ ...right, ...changes }, KEY, secrets))
  const refusal: [number, string] = [401, 'Authorization: does not fit the key']

  test('a Postmark webhook is accepted if its password and its path were made from one of the key’s secrets', () => {
    expect(prove()).toBeNull()
    expect(prove({}, [OTHER, SECRET])).toBeNull()
    expect(prove({}, [OTHER])).toEqual(refusal)
    expect(prove({}, [])).toEqual(refusal)
  })

  test('a Postmark webhook is accepted only if its password and its path were made from the same secret', () => {
    for (const changes of [
      { authorization: other.authorization },
      { authorization: '' },
      { authorization: right.authorization.slice(0, -1) },
      { authorization: `${right.authorization}x` },
      { authorization: words(right.authorization.length) },
      { pathname: other.pathname },
      { pathname: '/v0/inbound/postmark/' },
      { pathname: right.pathname.slice(0, -1) },
    ]) {
      expect([changes, prove(changes)]).toEqual([changes, refusal])
      expect([changes, prove(changes, [OTHER, SECRET])]).toEqual([changes, refusal])
    }
  })

  test('the password and the path of a Postmark webhook are valid for only one key', () => {
    expect(faultOf(() => provePostmark(right, 'key-2', [SECRET]))).toEqual(refusal)
  })
})

describe('a Postmark webhook about a received mail must contain the raw mail and its recipient', () => {
  const MAIL = { RawEmail: 'Subject: ü\r\n\r\nHello', OriginalRecipient: 'box@purser.example' }
  const mail = (changes: Record<string, unknown> = {}) => {
    const news = read({ ...MAIL, ...changes })
    if (news.kind !== 'mail') throw new Error(news.kind)
    return news
  }
  const withHeader = (name: unknown, value: unknown) =>
    mail({ Headers: [{ Name: name, Value: value }] })

  test('a mail that Postmark received is read as UTF-8 bytes, with its recipient', () => {
    const news = mail()
    expect(news.bytes.toString('utf8')).toBe(MAIL.RawEmail)
    expect(news.envelope).toEqual({ from: '', to: ['box@purser.example'] })
    expect(news.spf).toBeNull()
  })

  test('a Postmark webhook about a received mail must contain the raw mail, and the error names the Postmark setting for it', () => {
    for (const RawEmail of [undefined, '', 7, null])
      expect(faultOf(() => mail({ RawEmail }))).toEqual([
        400,
        'RawEmail: must be set; turn on "Include raw email content in JSON payload"',
      ])
  })

  test('a Postmark webhook about a received mail must name the recipient’s address', () => {
    for (const OriginalRecipient of [undefined, '', 7, 'no address', 'a@a.example, b@b.example'])
      expect(faultOf(() => mail({ OriginalRecipient }))).toEqual([
        400,
        'OriginalRecipient: must be an address',
      ])
  })

  test('the sender of a mail from Postmark is the address in Return-Path, with or without angle brackets', () => {
    const from = (value: unknown) => withHeader('Return-Path', value).envelope.from
    expect(from('<ada@a.example>')).toBe('ada@a.example')
    expect(from('ada@a.example')).toBe('ada@a.example')
    expect(from('< ada@a.example >')).toBe('ada@a.example')
    const long = `ada+caf_=${words(60)}=purser.example@gmail.com`
    expect(from(`<${long}>`)).toBe(long)
    for (const none of ['<>', '', 'no address', '<<ada@a.example>>', 7, null])
      expect([none, from(none)]).toEqual([none, ''])
  })

  test('if a mail from Postmark has several headers with one name, the first header is read, in any letter case', () => {
    const Headers = [
      { Name: 'X-Other', Value: '<x@a.example>' },
      { Name: 7, Value: 'x' },
      null,
      { Name: 'RETURN-PATH', Value: '<one@a.example>' },
      { Name: 'Return-Path', Value: '<two@a.example>' },
    ]
    expect(mail({ Headers }).envelope.from).toBe('one@a.example')
    expect(mail({ Headers: 'Return-Path' }).envelope.from).toBe('')
    expect(mail({ Headers: { Name: 'Return-Path', Value: 'a@a.example' } }).envelope.from).toBe('')
  })

  test('the SPF result of a mail from Postmark is the first word of Received-SPF', () => {
    const spf = (value: unknown) => withHeader('Received-SPF', value).spf
    expect(spf('Pass (sender SPF authorized) identity=mailfrom')).toBe('pass')
    expect(spf('  softfail')).toBe('softfail')
    expect(spf('unheard of')).toBe('none')
    for (const none of ['', '(pass)', 7]) expect([none, spf(none)]).toEqual([none, null])
  })
})

describe('a Postmark webhook about a bounce or a complaint becomes a report about the sent mail', () => {
  const BOUNCE = {
    RecordType: 'Bounce',
    Type: 'HardBounce',
    Email: 'gone@b.example',
    From: 'box@purser.example',
    MessageID: 'id-1',
    Description: 'The server refused',
  }
  const report = (changes: Record<string, unknown> = {}) => {
    const news = read({ ...BOUNCE, ...changes })
    if (news.kind !== 'report') throw new Error(news.kind)
    return news.report
  }

  test('the report of a hard bounce from Postmark contains the address, the sender, the status and the id of the sent copy', () => {
    expect(report()).toEqual({
      kind: 'bounce',
      address: 'gone@b.example',
      from: 'box@purser.example',
      status: '5.1.1',
      detail: 'The server refused',
      relayIds: ['id-1'],
      messageIds: [],
      returnPaths: [],
    })
    expect(report({ Type: 'BadEmailAddress' }).kind).toBe('bounce')
  })

  test('a Postmark complaint may have the form of a bounce or of a separate record, and its report has no status', () => {
    for (const changes of [{ Type: 'SpamComplaint' }, { RecordType: 'SpamComplaint' }]) {
      const { kind, status } = report(changes)
      expect([changes, kind, status]).toEqual([changes, 'complaint', null])
    }
  })

  test('the service makes no report from a Postmark record that is neither a hard bounce nor a complaint', () => {
    for (const changes of [
      { Type: 'SoftBounce' },
      { Type: 'Transient' },
      { Type: undefined },
      { RecordType: 'Delivery' },
      { RecordType: null },
      { RecordType: 'Open', Type: 'SpamComplaint' },
    ])
      expect([changes, read({ ...BOUNCE, ...changes })]).toEqual([changes, { kind: 'other' }])
  })

  test('a Postmark bounce that names no address is refused', () => {
    for (const Email of [undefined, 7, '', 'no address'])
      expect(faultOf(() => report({ Email }))).toEqual([400, 'Email: must be an address'])
  })

  test('a Postmark bounce must have an id of at most 320 characters, from which the service removes brackets and domain', () => {
    expect(report({ MessageID: '<id-1@pm.example>' }).relayIds).toEqual(['id-1'])
    expect(report({ MessageID: words(320) }).relayIds).toEqual([words(320)])
    for (const MessageID of [words(321), undefined, 7])
      expect(faultOf(() => report({ MessageID }))).toEqual([
        400,
        'MessageID: must be a text of at most 320 characters',
      ])
  })

  test('the report of a Postmark bounce has the text of Details, or else of Description, on one line of at most 400 characters', () => {
    const detail = (changes: Record<string, unknown>) => report(changes).detail
    expect(detail({ Details: ' 550\r\n no  such user ' })).toBe('550 no such user')
    expect(detail({ Details: '' })).toBe('The server refused')
    expect(detail({ Details: 7 })).toBe('The server refused')
    expect(detail({ Details: 7, Description: 7 })).toBe('')
    expect(detail({ Details: words(401) })).toBe(words(400))
    expect(detail({ Details: `${words(399)}🦉` })).toBe(`${words(399)}\ufffd`)
  })

  test('the sender in the report of a Postmark bounce has at most 320 characters, and may be missing', () => {
    expect(report({ From: words(321) }).from).toBe(words(320))
    expect(report({ From: undefined }).from).toBe('')
  })

  test('the service finds the Message-IDs and envelope senders in the returned copy of a Postmark bounce', () => {
    const { messageIds, returnPaths } = report({
      Content:
        'Return-Path: <box+x@purser.example>\r\nmessage-id:\t<m-1@purser.example>\r\n' +
        'X-Message-ID: <m-2@purser.example>\r\nReturn-Path: plain@purser.example\r\n' +
        'Return-Path: nobody\r\nMessage-ID: no brackets\r\n',
    })
    expect(messageIds).toEqual(['<m-1@purser.example>'])
    expect(returnPaths).toEqual(['box+x@purser.example', 'plain@purser.example'])
  })

  test('in a Postmark bounce, at most ten Message-IDs and 65,536 characters of the returned copy are read', () => {
    const line = 'Message-ID: <m@purser.example>\n'
    expect(report({ Content: line.repeat(11) }).messageIds).toHaveLength(10)
    const before = (chars: number) => `${words(chars - line.length)}\n${line.trim()}`
    expect(report({ Content: before(65_536) }).messageIds).toHaveLength(1)
    expect(report({ Content: before(65_537) }).messageIds).toHaveLength(0)
  })
})

test('a Postmark webhook is refused if its body is not JSON, or if the JSON is no object and therefore contains no mail', () => {
  expect(faultOf(() => readPostmark('{'))).toEqual([400, 'The body must be valid JSON'])
  for (const json of ['null', '7', '[]'])
    expect(faultOf(() => readPostmark(json))?.[1]).toStartWith('RawEmail: must be set')
})
