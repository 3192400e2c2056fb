import { describe, expect, test } from 'bun:test'
import {
  freshSeconds,
  isDocumentUrl,
  KNOWN_DOCUMENTS,
  readClientDocument,
} from '../../../shared/oauth/clientDocument.ts'

const URL_ = 'https://app.example/client.json'

describe('a client id may be the https URL of a client metadata document', () => {
  const ofLength = (length: number) => 'https://app.example/'.padEnd(length, 'a')

  test.each([URL_, 'https://app.example/a?b=c', 'https://app.example:8443/a', ofLength(500)])(
    'the URL %s may be a client id',
    (id) => expect(isDocumentUrl(id)).toBe(true),
  )

  test.each([
    ['with more than 500 characters', ofLength(501)],
    ['with http', 'http://app.example/client.json'],
    ['with an upper-case scheme', 'HTTPS://app.example/client.json'],
    ['that does not parse', 'https://app.example:x/client.json'],
    ['without a path', 'https://app.example'],
    ['with the root as its path', 'https://app.example/'],
    ['with dot segments', 'https://app.example/a/../client.json'],
    ['with a backslash', 'https://app.example/a\\client.json'],
    ['with an upper-case host', 'https://App.example/client.json'],
    ['with a fragment', 'https://app.example/client.json#a'],
    ['with an empty fragment', 'https://app.example/client.json#'],
    ['with a user name', 'https://user@app.example/client.json'],
    ['with a password', 'https://:password@app.example/client.json'],
    ['with the default port', 'https://app.example:443/client.json'],
    ['with a blank at its end', 'https://app.example/client.json '],
    ['that is empty', ''],
  ])('a URL cannot be a client id %s', (_name, id) => expect(isDocumentUrl(id)).toBe(false))
})

describe('a client metadata document must state the name and the redirect URIs of the OAuth client', () => {
  const text = (changes: object = {}) =>
    JSON.stringify({
      client_id: URL_,
      client_name: 'App',
      redirect_uris: ['https://app.example/callback'],
      ...changes,
    })

  test('a client metadata document states the name and the redirect URIs of the OAuth client', () => {
    expect(readClientDocument(URL_, text())).toEqual({
      name: 'App',
      redirectUris: ['https://app.example/callback'],
    })
  })

  test.each([
    ['is not JSON', '{', 'the document must be valid JSON'],
    ['is empty', '', 'the document must be valid JSON'],
    [
      'names another client id',
      text({ client_id: 'https://other.example/client.json' }),
      'client_id must be the URL of the document',
    ],
    [
      'names no client id',
      text({ client_id: undefined }),
      'client_id must be the URL of the document',
    ],
    [
      'names its URL in a list',
      text({ client_id: [URL_] }),
      'client_id must be the URL of the document',
    ],
  ])('a client metadata document is refused if it %s', (_name, document, message) => {
    expect(() => readClientDocument(URL_, document)).toThrow(message)
  })

  test('a client metadata document is refused if it is no object or has no redirect URI', () => {
    for (const document of ['null', '[]', '"x"', '1', text({ redirect_uris: [] })]) {
      expect(() => readClientDocument(URL_, document)).toThrow()
    }
  })
})

test.each([
  [null, 3_600],
  ['', 3_600],
  ['no-store', 3_600],
  ['max-age=299', 300],
  ['max-age=301', 301],
  ['public, MAX-AGE=7200', 7_200],
  ['public,max-age=86400', 86_400],
  ['max-age=86401', 86_400],
  ['max-age=0', 300],
  ['s-maxage=7200', 3_600],
  ['x-max-age=7200', 3_600],
  [`${'x'.repeat(1_000)},max-age=7200`, 3_600],
])('a document with the Cache-Control %p is cached for %d seconds', (header, seconds) => {
  expect(freshSeconds(header)).toBe(seconds)
})

test('each client metadata document that the service knows in advance has a valid URL, a name and redirect URIs', () => {
  for (const [url, { name, redirectUris }] of KNOWN_DOCUMENTS) {
    expect(isDocumentUrl(url)).toBe(true)
    expect([name === '', redirectUris.length === 0]).toEqual([false, false])
  }
})
