/**
 * Tests how the placeholders in a request body are filled, and as which part of the body (such as a form field) each
 * placeholder counts.
 */
import { describe, expect, test } from 'bun:test'
import { CredentialInputError } from '../../../shared/vault/credential.ts'
import { fillBody, fillPairs } from '../../../shared/vault/fillBody.ts'
import { type Fill, PLACEHOLDER } from '../../../shared/vault/placeholders.ts'

const VALUE = `a"b<&'\\ü/`

/**
 * Returns a function that replaces each placeholder by the value, and a list of the request parts in which placeholders
 * were.
 */
function recorded(value = VALUE): { fill: Fill; places: string[] } {
  const places: string[] = []
  const fill: Fill = (text, placesAt, write) =>
    text.replaceAll(PLACEHOLDER, (_all, field: string, at: number) => {
      places.push(...placesAt(at))
      return write(value, field)
    })
  return { fill, places }
}

function filled(body: string, type?: string, headers: Record<string, string> = {}) {
  const { fill, places } = recorded()
  const all = { ...(type === undefined ? {} : { 'Content-Type': type }), ...headers }
  return { body: fillBody(body, all, fill), places }
}

describe('the service fills the placeholders in the fields of a form body', () => {
  const FORM = 'application/x-www-form-urlencoded'

  test('in a form body, the owner can allow a secret in single fields, and the service percent-encodes the inserted secret', () => {
    const { body, places } = filled('a=1&user+name={{x}}&b=={{x}}&{{x}}', FORM)
    const value = encodeURIComponent(VALUE)
    expect(body).toBe(`a=1&user+name=${value}&b==${value}&${value}`)
    expect(places).toEqual(['form:user%20name', 'form:b', 'a name of the form'])
  })

  test('in a form body, no secret may be in a field name, in a value with a semicolon or in a field with a malformed name', () => {
    expect(filled('{{x}}=1&b={{x}};c=2&%zz={{x}}', FORM).places).toEqual([
      'a name of the form',
      'a form with a semicolon',
      'a name of the form that does not decode',
    ])
    expect(filled('b=1;c={{x}}', FORM).places).toEqual(['a form with a semicolon'])
  })

  test('a form body counts as plain text if its charset or its encoding is unclear', () => {
    for (const clear of ['', '; charset=utf-8', '; charset="UTF-8"; x=1', ';charset=utf8'])
      expect([clear, filled('a={{x}}', FORM + clear).places]).toEqual([clear, ['form:a']])
    for (const doubtful of ['; charset=utf-7', '; charset=utf-16', ', text/plain'])
      expect([doubtful, filled('a={{x}}', FORM + doubtful).places]).toEqual([doubtful, ['body']])
    expect(filled('a={{x}}', FORM, { 'content-encoding': 'gzip' }).places).toEqual(['body'])
    expect(filled('a={{x}}', FORM, { 'content-encoding': ' identity ' }).places).toEqual(['form:a'])
    expect(filled('a={{x}}', FORM, { 'content-encoding': '' }).places).toEqual(['form:a'])
  })

  test('a value inserted into a form body is percent-encoded even if the form counts as plain text', () => {
    expect(filled('a={{x}}', `${FORM}; charset=utf-7`).body).toBe(`a=${encodeURIComponent(VALUE)}`)
  })
})

test('a placeholder in the query of a URL counts as a query parameter, and not as a form field', () => {
  const { fill, places } = recorded('v w')
  expect(fillPairs('query', 'key={{x}}&{{x}}=1&c=1;d={{x}}', fill)).toBe(
    'key=v%20w&v%20w=1&c=1;d=v%20w',
  )
  expect(places).toEqual(['query:key', 'a name of the query', 'a query with a semicolon'])
})

describe('the service fills the placeholders in the strings of a JSON body', () => {
  const JSON_TYPE = 'application/json'

  test('in a JSON body, the owner can allow a secret in single strings, which are named by their JSON Pointers', () => {
    const text =
      '{"a":"{{x}}","b":[1,"{{x}}",{"c/d~e":"p {{x}} s"}],"f":[[],["{{x}}"]],"g":"{{x}}"}'
    const { body, places } = filled(text, JSON_TYPE)
    expect(places).toEqual(['json:/a', 'json:/b/1', 'json:/b/2/c~1d~0e', 'json:/f/1/0', 'json:/g'])
    expect(JSON.parse(body)).toEqual({
      ...{ a: VALUE, b: [1, VALUE, { 'c/d~e': `p ${VALUE} s` }] },
      ...{ f: [[], [VALUE]], g: VALUE },
    })
  })

  test('inserting a secret into a JSON body changes no other byte, so that a large number keeps all its digits', () => {
    const text = '{ "n" : 12345678901234567890.10 ,\n"s":"\\u0041\\"{", "x":"{{x}}" }'
    expect(filled(text, JSON_TYPE).body).toBe(text.replace('"{{x}}"', JSON.stringify(VALUE)))
    expect(filled('{"n":1.0}', JSON_TYPE)).toEqual({ body: '{"n":1.0}', places: [] })
    expect(filled('no json', JSON_TYPE).body).toBe('no json')
    expect(filled('no json \\', JSON_TYPE).body).toBe('no json \\')
  })

  test('a placeholder in a JSON body is found even if its braces are escaped', () => {
    const { body, places } = filled('{"a":"\\u007b{x}}"}', JSON_TYPE)
    expect([JSON.parse(body), places]).toEqual([{ a: VALUE }, ['json:/a']])
  })

  test('a body with any JSON media type (such as application/vnd.api+json) is read as JSON', () => {
    for (const type of ['application/vnd.api+json', 'application/x-amz-json-1.1', 'text/json'])
      expect([type, filled('{"a":"{{x}}"}', type).places]).toEqual([type, ['json:/a']])
    for (const type of ['application/jsonp', 'json', 'application/x+json+xml'])
      expect([type, filled('{"a":"{{x}}"}', type).places]).toEqual([type, ['body']])
  })

  test.each([
    ['that is not valid', '{"a":"{{x}}"', 'request.body must be JSON, as its content-type says'],
    [
      'with a placeholder in a key',
      '{"{{x}}":1}',
      'request.body must hold no placeholder in a JSON key',
    ],
    [
      'with an escaped placeholder in a key',
      '{"\\u007b{x}}":1}',
      'must hold no placeholder in a JSON key',
    ],
    [
      'with the same key twice',
      '{"a":1,"a":"{{x}}"}',
      'request.body must hold each JSON key once in an object',
    ],
    [
      'with an escaped copy of a key',
      '{"a":"{{x}}","b":{},"\\u0061":2}',
      'request.body must hold each JSON key once in an object',
    ],
  ])(
    'a JSON body %s is refused if the body is to be filled with the values of secrets',
    (_, body, message) => {
      expect(() => filled(body, JSON_TYPE)).toThrow(CredentialInputError)
      expect(() => filled(body, JSON_TYPE)).toThrow(message)
    },
  )

  test('a JSON body may repeat a key if it has no placeholder, or if the keys are in different objects', () => {
    expect(filled('{"a":1,"a":"\\n"}', JSON_TYPE).body).toBe('{"a":1,"a":"\\n"}')
    expect(filled('[{"a":"{{x}}"},{"a":1}]', JSON_TYPE).places).toEqual(['json:/0/a'])
  })

  test('a JSON body with a placeholder may be nested at most 64 levels', () => {
    const nested = (levels: number) => `${'['.repeat(levels)}"{{x}}"${']'.repeat(levels)}`
    expect(filled(nested(64), JSON_TYPE).places).toEqual([`json:${'/0'.repeat(64)}`])
    expect(() => filled(nested(65), JSON_TYPE)).toThrow(
      'request.body must nest at most 64 levels where it has placeholders',
    )
  })

  test('a JSON body in another charset counts as plain text, and the inserted value is escaped for JSON', () => {
    const { body, places } = filled('{"a":"{{x}}"}', `${JSON_TYPE}; charset=utf-16`)
    expect([JSON.parse(body), places]).toEqual([{ a: VALUE }, ['body']])
  })
})

test('a secret in a body that is neither a form nor JSON needs permission for the whole body, and is escaped in XML and HTML', () => {
  expect(filled('<a>{{x}}</a>', 'application/soap+xml')).toEqual({
    body: '<a>a&#34;b&#60;&#38;&#39;\\ü/</a>',
    places: ['body'],
  })
  expect(filled('{{x}}', 'text/html').body).toBe('a&#34;b&#60;&#38;&#39;\\ü/')
  expect(filled('{{x}}', 'text/plain').body).toBe(VALUE)
  expect(filled('a={{x}}')).toEqual({ body: `a=${VALUE}`, places: ['body'] })
})
