/** Tests in which parts of a request (such as a header or a body field) a secret may be used. */
import { describe, expect, test } from 'bun:test'
import {
  defaultPlacement,
  mayStand,
  meetPlacements,
  parsePlacement,
  placeName,
} from '../../../shared/vault/placement.ts'

describe('an entry of a placement list names a part of the request where a secret may be used, and any other text is refused', () => {
  test.each([
    ['basic', 'basic'],
    ['body', 'body'],
    ['password@body', 'password@body'],
    ['header:X-Key', 'header:x-key'],
    ['key@header:Authorization', 'key@header:authorization'],
    ['query:api%20key', 'query:api%20key'],
    ['query:%61', 'query:a'],
    ['query:100%25', 'query:100%25'],
    ['form:user[name]', 'form:user[name]'],
    ['json:/a/b~1c', 'json:/a/b~1c'],
    ['json:/%C3%A4', 'json:/ä'],
    ['path:/bot', 'path:/bot'],
    ['path:/', 'path:/'],
    ['path:/a%20b', 'path:/a%20b'],
    [`${'f'.repeat(64)}@basic`, `${'f'.repeat(64)}@basic`],
    [`query:${'q'.repeat(200)}`, `query:${'q'.repeat(200)}`],
  ])('the placement entry %s is stored as %s', (text, entry) => {
    expect(parsePlacement(text)).toBe(entry)
  })

  test.each([
    ...['', 'Basic', 'basic:', 'body:x', 'cookie:a', 'query', 'query:', 'query:a b', 'xquery:a'],
    ...['json:a', 'json:%2Fa', 'path:bot', 'path:/a?b', 'path:/a#b', 'path:/{a', 'path:/a}'],
    ...['path:/a\\b', 'query:%', 'form:%ff', 'json:/%zz', 'header:a:b', 'header:ä', '@basic'],
    ...['1a@basic', 'a b@basic', `${'f'.repeat(65)}@basic`, `query:${'q'.repeat(201)}`],
    ...[`header:${'h'.repeat(129)}`, 'basic\n'],
  ])('the text "%s" is refused as a placement entry', (text) => {
    expect(parsePlacement(text)).toBeNull()
  })

  test.each([
    ...['host', 'Connection', 'cookie2', 'te', 'trailer', 'upgrade', 'expect', 'content-type'],
    ...['transfer-encoding', 'accept', 'accept-language', 'content_type', 'Content.Encoding'],
    ...['Transfer_Encoding', 'accept_language'],
  ])('a secret may not be placed in the header %s', (name) => {
    expect(parsePlacement(`header:${name}`)).toBeNull()
  })

  test('a secret may be placed in a header whose name only begins like the name of a forbidden header', () => {
    for (const name of ['cookie', 'hosts', 'te2', 'content-', 'x-host']) {
      expect(parsePlacement(`header:${name}`)).toBe(`header:${name}`)
    }
    expect(parsePlacement(`header:${'h'.repeat(128)}`)).not.toBeNull()
  })
})

test('in the name of a request part that may hold a secret, blanks, percent signs and control characters are percent-encoded', () => {
  expect(placeName('a b\t%\n')).toBe('a%20b%09%25%0A')
  expect(placeName('ä/[x]')).toBe('ä/[x]')
})

describe('the common part of two placement entries (allowed request parts) allows a secret only where both entries allow it', () => {
  test('if one of two placement entries (allowed request parts) is narrower, their common part is the narrower entry', () => {
    expect(meetPlacements('query:a', 'query:a')).toBe('query:a')
    expect(meetPlacements('body', 'json:/a')).toBe('json:/a')
    expect(meetPlacements('form:a', 'body')).toBe('form:a')
    expect(meetPlacements('header:authorization', 'basic')).toBe('basic')
    expect(meetPlacements('basic', 'header:authorization')).toBe('basic')
  })

  test('two placement entries (allowed request parts) that name different parts have no common part', () => {
    expect(meetPlacements('query:a', 'query:b')).toBeNull()
    expect(meetPlacements('body', 'query:a')).toBeNull()
    expect(meetPlacements('body', 'path:/json:')).toBeNull()
    expect(meetPlacements('header:x', 'basic')).toBeNull()
    expect(meetPlacements('header:authorization', 'header:x')).toBeNull()
  })

  test('if one of two placement entries (allowed request parts) is limited to a field, their common part is limited to this field', () => {
    expect(meetPlacements('key@query:a', 'query:a')).toBe('key@query:a')
    expect(meetPlacements('body', 'key@json:/a')).toBe('key@json:/a')
    expect(meetPlacements('key@body', 'json:/a')).toBe('key@json:/a')
    expect(meetPlacements('key@body', 'key@json:/a')).toBe('key@json:/a')
    expect(meetPlacements('key@query:a', 'pin@query:a')).toBeNull()
    expect(meetPlacements('key@query:a', 'query:b')).toBeNull()
  })

  test('the name of a request part in a placement entry may contain an at sign', () => {
    expect(meetPlacements('query:a@b', 'query:a@b')).toBe('query:a@b')
    expect(meetPlacements('key@path:/a@b', 'path:/a@b')).toBe('key@path:/a@b')
  })
})

describe('a field of a credential may be used only in the request parts that its placement (list of allowed parts) names', () => {
  test('a secret field may be used in a request part that is allowed for this field or for all fields', () => {
    expect(mayStand(['query:a'], ['key'], ['query:a'])).toBe(true)
    expect(mayStand(['key@query:a'], ['key'], ['query:a'])).toBe(true)
    expect(mayStand(['key@body'], ['key'], ['json:/a'])).toBe(true)
    expect(mayStand(['pin@query:a'], ['key'], ['query:a'])).toBe(false)
    expect(mayStand(['query:b'], ['key'], ['query:a'])).toBe(false)
    expect(mayStand(['json:/a'], ['key'], ['body'])).toBe(false)
    expect(mayStand([], ['key'], ['query:a'])).toBe(false)
  })

  test('if a secret field has several names, it may be used in a request part that is allowed for one of these names', () => {
    expect(mayStand(['key@basic'], ['apiKey', 'key'], ['header:x', 'basic'])).toBe(true)
    expect(mayStand(['key@basic'], [], ['basic'])).toBe(false)
    expect(mayStand(['key@basic'], ['key'], [])).toBe(false)
  })
})

describe('by default, a credential may be used only in the usual request parts of its type', () => {
  const may = (type: string, field: string, place: string) =>
    mayStand(defaultPlacement(type), [field], [place])

  test('by default, a login may be placed in the fields of a login form and in Basic authentication', () => {
    for (const [field, name] of [
      ...[
        ['password', 'password'],
        ['username', 'username'],
        ['username', 'login'],
      ],
      ...[
        ['username', 'email'],
        ['totp', 'totp'],
        ['totp', 'otp'],
      ],
    ] as [string, string][]) {
      expect(may('LOGIN', field, `form:${name}`)).toBe(true)
      expect(may('LOGIN', field, `json:/${name}`)).toBe(true)
    }
    expect(may('LOGIN', 'basicAuth', 'basic')).toBe(true)
    expect(may('LOGIN', 'password', 'form:username')).toBe(false)
    expect(may('LOGIN', 'password', 'query:password')).toBe(false)
    expect(may('LOGIN', 'password', 'header:authorization')).toBe(false)
  })

  test('by default, a token may be placed only in the Authorization header', () => {
    for (const type of ['API_KEY', 'OAUTH', 'CUSTOM']) {
      expect(defaultPlacement(type)).toEqual(['header:authorization'])
    }
  })

  test('by default, a TOTP code, an AWS token, a password, card data or an address may be used only in the request parts that are usual for its type', () => {
    expect(may('TOTP', 'totp', 'form:otp')).toBe(true)
    expect(may('TOTP', 'secret', 'form:otp')).toBe(false)
    expect(defaultPlacement('AWS')).toEqual(['sessionToken@header:x-amz-security-token'])
    expect(defaultPlacement('DATABASE')).toEqual(['basic'])
    expect(defaultPlacement('SMTP')).toEqual(['basic'])
    for (const field of ['cardholder', 'number', 'cvc', 'expMonth', 'expYear', 'zip']) {
      expect(may('CARD', field, `json:/${field}`)).toBe(true)
    }
    expect(may('SHIPPING_ADDRESS', 'line1', 'form:line1')).toBe(true)
    expect(may('SHIPPING_ADDRESS', 'line1', 'form:line2')).toBe(false)
  })

  test('by default, a credential may be used nowhere if its type is unknown or belongs to a protocol other than HTTP', () => {
    for (const type of ['SSH_KEY', 'CERTIFICATE', '', 'constructor', 'toString']) {
      expect(defaultPlacement(type)).toEqual([])
    }
  })
})
