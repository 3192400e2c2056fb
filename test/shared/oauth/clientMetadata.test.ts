/** Tests the metadata and the redirect URIs that an OAuth client may register. */
import { describe, expect, test } from 'bun:test'
import { ClientMetadataError, readClientMetadata } from '../../../shared/oauth/clientMetadata.ts'
import { isRegistered, redirectFault, redirectHost } from '../../../shared/oauth/redirectUri.ts'

const CURSOR = 'cursor://anysphere.cursor-mcp/oauth/callback'

describe('a redirect URI of an OAuth client is compared exactly, and shown to the owner by its host', () => {
  test.each([
    'https://app.example/callback',
    'https://app.example:8443/cb?x=1',
    'http://127.0.0.1/cb',
    'http://127.0.0.1:49152/cb',
    'http://[::1]:1/cb',
    'http://localhost:3000/cb',
    CURSOR,
    `https://app.example/${'x'.repeat(480)}`,
  ])('the redirect URI of an OAuth client may be %s', (uri) => {
    expect(redirectFault(uri)).toBeNull()
  })

  test.each([
    [undefined, 'must be a text of at most 500 characters'],
    [['https://a.example/'], 'must be a text of at most 500 characters'],
    [`https://app.example/${'x'.repeat(481)}`, 'must be a text of at most 500 characters'],
    ['/callback', 'must be a URL in ASCII'],
    ['', 'must be a URL in ASCII'],
    ['https://äpp.example/', 'must be a URL in ASCII'],
    ['https://app.example/a b', 'must be a URL in ASCII'],
    ['http://app.example/cb', 'must be https, or http to a loopback host'],
    ['http://127.0.0.1.evil.example/', 'must be https, or http to a loopback host'],
    ['ftp://127.0.0.1/', 'must be https, or http to a loopback host'],
    ['javascript:alert(1)', 'must be https, or http to a loopback host'],
    [`${CURSOR}/x`, 'must be https, or http to a loopback host'],
    ['https://app.example/#a', 'must have no fragment, wildcard or backslash'],
    ['https://app.example/*', 'must have no fragment, wildcard or backslash'],
    ['https://app.example/\\', 'must have no fragment, wildcard or backslash'],
    ['https://ada@app.example/', 'must have no user name'],
    ['https://:secret@app.example/', 'must have no user name'],
  ])('the redirect URI %p is refused, because it %s', (uri, fault) => {
    expect(redirectFault(uri)).toBe(fault)
  })

  test('a redirect URI in a request must equal a registered URI, but a loopback host may have another port', () => {
    const registered = [
      'https://app.example/cb',
      'http://127.0.0.1:1/cb?x=1',
      'http://[::1]/cb',
      CURSOR,
    ]
    const allowed = (uri: string) => isRegistered(uri, registered)
    for (const uri of [...registered, 'http://127.0.0.1:65535/cb?x=1', 'http://127.0.0.1/cb?x=1'])
      expect([uri, allowed(uri)]).toEqual([uri, true])
    expect(allowed('http://[::1]:9/cb')).toBe(true)
    for (const uri of [
      'https://app.example:8443/cb',
      'https://app.example/cb/',
      'http://127.0.0.1:1/cb',
      'http://localhost:1/cb?x=1',
      'http://[::1]:9/other',
      'https://[::1]/cb',
      'http://127.0.0.1:1/cb?x=1#f',
      'no url',
    ])
      expect([uri, allowed(uri)]).toEqual([uri, false])
    expect(isRegistered('http://evil.example/', ['http://evil.example/'])).toBe(false)
  })

  test('the consent page shows the host of a redirect URI, or says that the URI leads to this computer or to a program', () => {
    expect(redirectHost('https://app.example:8443/cb')).toBe('app.example:8443')
    expect(redirectHost('http://127.0.0.1:1/cb')).toBe('this computer')
    expect(redirectHost(CURSOR)).toBe('cursor://')
  })
})

describe('the metadata of an OAuth client are refused if a field is missing or invalid', () => {
  const URI = 'https://app.example/cb'
  const read = (fields: Record<string, unknown> = {}) =>
    readClientMetadata({ redirect_uris: [URI], ...fields })
  const fault = (fields: unknown): [string, string] => {
    try {
      readClientMetadata(fields)
    } catch (error) {
      if (error instanceof ClientMetadataError) return [error.code, error.message]
    }
    return ['none', '']
  }
  const invalid = (fields: Record<string, unknown>) => fault({ redirect_uris: [URI], ...fields })

  test('the metadata of an OAuth client contain one to ten redirect URIs, and a name', () => {
    expect(read({ client_name: 'Agent', unknown: 1 })).toEqual({
      name: 'Agent',
      redirectUris: [URI],
    })
    expect(read()).toEqual({ name: '', redirectUris: [URI] })
    const ten = Array.from({ length: 10 }, (_, n) => `${URI}/${n}`)
    expect(read({ redirect_uris: ten }).redirectUris).toEqual(ten)
    for (const uris of [undefined, URI, [], [...ten, URI]])
      expect(invalid({ redirect_uris: uris })).toEqual([
        'invalid_redirect_uri',
        'redirect_uris must be a list of 1 to 10 URIs',
      ])
    expect(invalid({ redirect_uris: [URI, 'ftp://a.example/'] })).toEqual([
      'invalid_redirect_uri',
      'redirect_uris[1] must be https, or http to a loopback host',
    ])
  })

  test('the metadata of an OAuth client must be an object', () => {
    for (const value of [null, undefined, 'x', 7, [URI]])
      expect(fault(value)).toEqual([
        'invalid_client_metadata',
        'the metadata must be a JSON object',
      ])
  })

  test('the metadata of an OAuth client must allow a client without a secret, and the grant type authorization_code', () => {
    read({ token_endpoint_auth_method: 'none', grant_types: ['authorization_code', 'x'] })
    read({ token_endpoint_auth_method: 'x', token_endpoint_auth_methods: ['y', 'none'] })
    read({ response_types: ['code'] })
    const code = 'invalid_client_metadata'
    for (const fields of [
      { token_endpoint_auth_method: 'client_secret_basic' },
      { token_endpoint_auth_method: 'x', token_endpoint_auth_methods: ['y'] },
      { token_endpoint_auth_method: 'x', token_endpoint_auth_methods: 'none' },
    ])
      expect(invalid(fields)).toEqual([code, 'token_endpoint_auth_method must be none'])
    for (const grant_types of [['implicit'], 'authorization_code', null])
      expect(invalid({ grant_types })).toEqual([
        code,
        'grant_types must be a list that has authorization_code',
      ])
    expect(invalid({ response_types: ['token'] })).toEqual([
      code,
      'response_types must be a list that has code',
    ])
    expect(invalid({ client_secret: '' })).toEqual([code, 'client_secret must be absent'])
  })

  test('the name of an OAuth client is one line of at most 60 characters, without characters that hide text', () => {
    const nameOf = (client_name: unknown) => read({ client_name }).name
    expect(nameOf(' My\u202e \n agent\u0000 ')).toBe('My agent')
    expect(nameOf('x'.repeat(60))).toBe('x'.repeat(60))
    expect(nameOf('🦉'.repeat(61))).toBe('🦉'.repeat(60))
    expect(nameOf(`${' '.repeat(1_000)}x`)).toBe('')
    expect(invalid({ client_name: 7 })).toEqual([
      'invalid_client_metadata',
      'client_name must be a text',
    ])
  })
})
