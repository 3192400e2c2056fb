/** Tests which requests may use a secret, and how the placeholders in these requests are filled. */
import { describe, expect, test } from 'bun:test'
import { type Bounds, OutOfBoundsError } from '../../../shared/vault/bounds/bounds.ts'
import { CredentialInputError } from '../../../shared/vault/credential.ts'
import type { UsedCredential } from '../../../shared/vault/placeholders.ts'
import { checkUseRequest, fillRequest, type UseRequest } from '../../../shared/vault/useRequest.ts'

const URL_FAULT =
  'request.url must be an https URL without user name and fragment; its host holds no placeholder'
const HTTP_FAULT =
  'request.url must be an https URL; http is for the own machine only, where ALLOW_PRIVATE_NETWORKS is set'
const BLANK_FAULT = 'request.url must not contain blanks or control characters'

const request = (given: Partial<UseRequest> = {}): UseRequest => ({
  method: 'POST',
  url: 'https://api.example/v1',
  headers: {},
  body: null,
  ...given,
})
const check = (given: Partial<UseRequest>, allowLoopback = false) =>
  checkUseRequest(request(given), { allowLoopback })
/** Returns the error text for a request, or null if the request is accepted. */
function fault(given: Partial<UseRequest>, allowLoopback = false): string | null {
  try {
    check(given, allowLoopback)
  } catch (error) {
    if (error instanceof CredentialInputError) return error.message
    throw error
  }
  return null
}
const urlFault = (url: string, allowLoopback = false) => fault({ url }, allowLoopback)

describe('the service finds host, port, method and path of a request that uses a secret, even before the placeholders are filled', () => {
  test('a request with a secret is checked by its method, its host with port, and its path without the query', () => {
    expect(check({ method: 'PUT', url: 'https://API.example:8443/a/{{id}}?q=1?2' })).toEqual({
      method: 'PUT',
      host: 'api.example:8443',
      path: '/a/{{id}}',
    })
    expect(check({ url: 'https://api.example:443' })).toMatchObject({
      host: 'api.example',
      path: '/',
    })
    expect(check({ url: 'HTTPS://api.example?q=1' }).path).toBe('/')
  })

  test.each([
    ['/./weather', '/weather'],
    ['/x/../weather', '/weather'],
    ['/x/%2e%2E/weather', '/weather'],
    ['/%77eather', '/weather'],
    ['/.\\weather', '/weather'],
    ['/a%3a%40b', '/a:@b'],
    ['/a|b%7cc', '/a%7Cb%7Cc'],
    ['/a%2fb%2Fc', '/a%2Fb%2Fc'],
    ['/%%37%37', '/%2577'],
    ['/é', '/%C3%A9'],
    ['/Weather//', '/Weather//'],
    ['/x/../{{ key }}/{{id}}', '/{{key}}/{{id}}'],
    ['/{{key}}/../{{id}}', '/{{id}}'],
    ['/%7B%7Bkey%7D%7D', '/%7B%7Bkey%7D%7D'],
  ])('the recorded path of %p is the normal form %p', (path, normal) => {
    expect(check({ url: `https://api.example${path}?a=/../b` }).path).toBe(normal)
  })
})

describe('the service refuses a request with a secret if its URL is malformed, too long or not secure', () => {
  test.each([
    'ftp://api.example/',
    'api.example/v1',
    '//api.example/v1',
    'https:///v1',
    'https:/api.example/',
    ' https://api.example/',
    'https://api.example/#top',
    'https://api.example\\v1',
    'https://ada@api.example/',
    'https://ada:soup@api.example/',
    'https://{{host}}/',
    'https://api.example}/',
    'https://api%2eexample/',
    'https://api example/',
    'https://api.example:99999/',
    'https://[::1/',
    '',
  ])('a request with a secret to the URL "%s" is refused', (url) => {
    expect(urlFault(url)).toBe(URL_FAULT)
  })

  test('the URL of a request with a secret has at most 4096 characters', () => {
    const url = (length: number) => 'https://api.example/'.padEnd(length, 'a')
    expect(urlFault(url(4_096))).toBeNull()
    expect(urlFault(url(4_097))).toBe('request.url must be at most 4096 characters')
  })

  test('the URL of a request with a secret may contain blanks only inside placeholders', () => {
    expect(urlFault('https://api.example/{{ id }}?q={{ id }}')).toBeNull()
    for (const sign of [' ', '\t', '\n', '\0', '\x7f']) {
      expect(urlFault(`https://api.example/a${sign}b`)).toBe(BLANK_FAULT)
    }
    expect(urlFault('https://api.example/{{ 1 }}')).toBe(BLANK_FAULT)
    expect(urlFault('https://api.example/ä~!')).toBeNull()
  })

  test('the service refuses a request with a secret if one of its headers is forbidden or ambiguous', () => {
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3:8080', '[::1]', 'LOCALHOST:80']) {
      expect(urlFault(`http://${host}/`, true)).toBeNull()
      expect(urlFault(`HTTP://${host}/`)).toBe(HTTP_FAULT)
      expect(urlFault(`https://${host}/`)).toBeNull()
    }
    for (const host of ['api.example', 'localhost.example', '128.0.0.1', '[::2]', 'xlocalhost']) {
      expect(urlFault(`http://${host}/`, true)).toBe(HTTP_FAULT)
    }
  })
})

describe('a request with a secret may have at most forty headers', () => {
  const headerFault = (headers: Record<string, string>) => fault({ headers })
  const numbered = (count: number, value = '') =>
    Object.fromEntries(Array.from({ length: count }, (_one, n) => [`x${n + 10}`, value]))

  /**
   * Returns other spellings of a header name. A host that turns headers into CGI variables reads all of them as the
   * same header.
   */
  const otherSpellings = (name: string) =>
    ['_', '.'].map((sign) => name.replaceAll('-', sign)).filter((spelled) => spelled !== name)

  test('a request with a secret has at most forty headers', () => {
    expect(headerFault(numbered(40))).toBeNull()
    expect(headerFault(numbered(41))).toBe('request.headers must hold at most 40 headers')
  })

  test('a request with a secret is refused unless its header names have 1 to 128 characters of an HTTP token', () => {
    const text = 'request.headers must have names of 1 to 128 letters, digits and hyphens'
    expect(headerFault({ "!#$%&'*+.^_`|~-aZ9": '' })).toBeNull()
    expect(headerFault({ ['n'.repeat(128)]: '' })).toBeNull()
    for (const name of ['', 'n'.repeat(129), 'a b', 'a:', 'ä', 'a\n', '{{a}}']) {
      expect(headerFault({ [name]: '' })).toBe(text)
    }
  })

  test.each([
    ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'te'],
    ...['trailer', 'expect', 'proxy-authorization', 'proxy-connection', 'accept-encoding'],
    ...['accept-charset', 'a-im', 'range', 'request-range', 'if-range', 'if-match'],
    ...['if-none-match', 'if-modified-since', 'if-unmodified-since', 'want-digest'],
    ...['want-content-digest', 'want-repr-digest', 'x-http-method-override', 'x-http-method'],
    ...['x-method-override', 'x-original-url', 'x-rewrite-url', 'x-original-uri'],
    ...['x-forwarded-prefix', 'x-forwarded-path', 'x-forwarded-uri', 'forwarded'],
    ...['x-forwarded-host', 'x-forwarded-server', 'x-host', 'x-http-host-override'],
    'x-original-host',
  ])('a request with a secret must not have the header %s', (name) => {
    for (const spelled of [name, name.toUpperCase(), ...otherSpellings(name)]) {
      expect(headerFault({ [spelled]: '1' })).toBe(
        `request.headers must not hold ${spelled.toLowerCase()}`,
      )
    }
  })

  test('a request with a secret is refused if two of its header names differ only in letter case', () => {
    expect(headerFault({ 'X-A': '1', 'x-b': '2' })).toBeNull()
    expect(headerFault({ 'X-A': '1', 'x-a': '2' })).toBe('request.headers must hold x-a once')
  })

  test('a request with a secret is refused if some hosts read two of its headers as the same header', () => {
    for (const other of ['X_A', 'x_a', 'X.A']) {
      expect(headerFault({ 'X-A': '1', [other]: '2' })).toBe('request.headers must hold x-a once')
      expect(headerFault({ [other]: '1', 'X-B': '2' })).toBeNull()
    }
  })

  test.each(['content-type', 'content-encoding'])(
    'a request with a secret may have the header %s, but only with a hyphen in its name',
    (name) => {
      expect(headerFault({ [name]: '1' })).toBeNull()
      expect(headerFault({ [name.toUpperCase()]: '1' })).toBeNull()
      for (const spelled of otherSpellings(name)) {
        expect(headerFault({ [spelled]: '1' })).toBe(
          `request.headers must hold ${name}, not ${spelled}`,
        )
      }
    },
  )

  test('a request with a secret is refused unless its header values consist of visible ASCII characters and blanks', () => {
    expect(headerFault({ a: '\t ~!{{key}}' })).toBeNull()
    const text = 'request.headers.a must be at most 8192 visible ASCII characters and blanks'
    for (const value of ['a\nb', 'a\r', 'ä', '\0', '\x7f', 'v'.repeat(8_193)]) {
      expect(headerFault({ A: value })).toBe(text)
    }
    expect(headerFault({ a: 'v'.repeat(8_192) })).toBeNull()
  })

  test('all headers of a request with a secret have at most 16,384 characters together', () => {
    const pair = (length: number) => ({ a: 'v'.repeat(8_191), b: 'v'.repeat(length) })
    expect(headerFault(pair(8_191))).toBeNull()
    expect(headerFault(pair(8_192))).toBe(
      'request.headers must be at most 16384 characters together',
    )
  })

  test('a request header is allowed even if its name is a built-in JavaScript property', () => {
    expect(headerFault({ constructor: '1', toString: '2' })).toBeNull()
  })
})

describe('the service refuses a request with a secret if its body is too large, or if GET or HEAD has a body', () => {
  test('a request with a secret must have no body if its method is GET or HEAD', () => {
    expect(fault({ method: 'GET', body: '' })).toBe('request.body must be absent with GET')
    expect(fault({ method: 'HEAD', body: 'x' })).toBe('request.body must be absent with HEAD')
    expect(fault({ method: 'GET' })).toBeNull()
    expect(fault({ method: 'DELETE', body: 'x' })).toBeNull()
  })

  test('the body of a request with a secret has at most 262,144 bytes', () => {
    expect(fault({ body: 'x'.repeat(262_144) })).toBeNull()
    expect(fault({ body: `ä${'x'.repeat(262_143)}` })).toBe(
      'request.body must be at most 262144 bytes',
    )
  })
})

const KEY = 'tomato/soup?1'
const credential = (given: Partial<UsedCredential & Bounds> = {}): UsedCredential & Bounds => ({
  type: 'CUSTOM',
  data: { key: KEY },
  metadata: { site: 'a b' },
  allowedHosts: ['api.example'],
  allowedMethods: null,
  allowedPaths: null,
  placement: ['header:authorization', 'header:x-key', 'query:key', 'path:/bot', 'body'],
  ...given,
})
const fill = (given: Partial<UseRequest>, of: Partial<UsedCredential & Bounds> = {}) =>
  fillRequest(request(given), credential(of), 0)

describe('the service fills the placeholders in path, query, headers and body of a request, each in the right encoding', () => {
  test('a placeholder in the path is replaced by the percent-encoded value', () => {
    expect(fill({ url: 'https://api.example/bot{{key}}/send' }).url).toBe(
      'https://api.example/bottomato%2Fsoup%3F1/send',
    )
    expect(() => fill({ url: 'https://api.example/x/{{key}}' })).toThrow(OutOfBoundsError)
  })

  test('a placeholder in the query is replaced by the percent-encoded value', () => {
    expect(fill({ url: 'https://api.example/v1?a=1?&key={{key}}' }).url).toBe(
      'https://api.example/v1?a=1?&key=tomato%2Fsoup%3F1',
    )
    expect(fill({ url: 'https://api.example/v1?' }).url).toBe('https://api.example/v1?')
    expect(fill({ url: 'https://api.example?key={{key}}' }).url).toContain('key=tomato')
  })

  test('a placeholder in a header is replaced by the unchanged value', () => {
    const { headers } = fill({ headers: { 'X-Key': 'k {{key}}', b: '{{site}}', c: 'plain' } })
    expect(headers).toEqual({ 'X-Key': `k ${KEY}`, b: 'a b', c: 'plain' })
    expect(() => fill({ headers: { 'x-other': '{{key}}' } })).toThrow(OutOfBoundsError)
  })

  test('a value with control characters or non-ASCII characters cannot replace a placeholder in a header', () => {
    const text = '{{key}} does not fit into a header: its value has control or non-ASCII characters'
    const withKey = (key: string) => fill({ headers: { 'x-key': '{{key}}' } }, { data: { key } })
    for (const key of ['line one\r\nx: 1', 'crème-brûlée']) {
      expect(() => withKey(key)).toThrow(new CredentialInputError(text))
    }
    expect(withKey('k'.repeat(8_192)).headers['x-key']).toHaveLength(8_192)
  })

  test('placeholders in a request body are replaced, and a request without a body stays without one', () => {
    const body = (text: string | null) => fill({ body: text }).body
    expect(body('k={{site}}')).toBe('k=a b')
    expect(body(null)).toBeNull()
    expect(body('')).toBe('')
  })

  test('replacing the placeholders does not change the method, scheme, host and port of the request', () => {
    expect(fill({ method: 'PUT', url: 'https://api.example:443' })).toMatchObject({
      method: 'PUT',
      url: 'https://api.example:443/',
    })
  })
})

describe('a secret with the placement `basic` may be used only in Basic authentication', () => {
  const basic = { type: 'LOGIN', data: { username: 'ada', password: KEY }, placement: ['basic'] }
  const sent = (name: string, value: string) => fill({ headers: { [name]: value } }, basic)

  test('only an Authorization header of the scheme Basic counts as the request part `basic` for a secret', () => {
    const pair = Buffer.from(`ada:${KEY}`).toString('base64')
    expect(sent('Authorization', 'basic  {{ basicAuth }} ').headers).toEqual({
      Authorization: `basic  ${pair} `,
    })
    for (const value of ['{{basicAuth}}', 'Basic x{{basicAuth}}', 'Basic {{basicAuth}} x']) {
      expect(() => sent('authorization', value)).toThrow(OutOfBoundsError)
    }
    expect(() => sent('x-authorization', 'Basic {{basicAuth}}')).toThrow(OutOfBoundsError)
  })
})

describe('the service compares a request with a credential’s limits (hosts, methods, paths) only after the placeholders are filled', () => {
  test('a credential’s limits are checked against the host, the method and the path after placeholders are replaced', () => {
    expect(() => fill({ url: 'https://b.example/' })).toThrow(OutOfBoundsError)
    expect(() => fill({ method: 'PUT' }, { allowedMethods: ['POST'] })).toThrow(OutOfBoundsError)
    const allowedPaths = ['/bot']
    expect(() => fill({ url: 'https://api.example/v1' }, { allowedPaths })).toThrow(
      OutOfBoundsError,
    )
    const url = 'https://api.example/{{site}}'
    expect(() => fill({ url }, { metadata: { site: 'v10' }, allowedPaths })).toThrow(
      OutOfBoundsError,
    )
    expect(fill({ url }, { metadata: { site: 'bot' }, allowedPaths }).url).toEndWith('/bot')
  })
})

describe('the service masks in the response every secret of the credential that a request uses', () => {
  test('the list of secrets to mask has the values in the request and the other values of the credential, each once', () => {
    const { secrets } = fill(
      { headers: { 'x-key': '{{key}}' }, body: '{{key}}' },
      { data: { key: KEY, other: 'second-secret' } },
    )
    expect(secrets.toSorted()).toEqual(['second-secret', KEY])
  })

  test('a credential with more than 64 secret values cannot be used in a request', () => {
    const data = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_one, n) => [`f${n}`, `secret-value-${n}`]))
    expect(fill({}, { data: data(64) }).secrets).toHaveLength(64)
    expect(() => fill({}, { data: data(65) })).toThrow(
      new CredentialInputError('A credential with more than 64 values cannot be used'),
    )
  })
})
