import { expect, test } from 'bun:test'
import { checkEncoding, readUrl } from '../../../../api/http/input/url.ts'

const HOST = 'Host must be a host name or an IP address, with an optional port'

test('a request must have a readable URL, and a valid Host header if it has one', () => {
  for (const [host, url, isRead] of [
    [null, 'http://a.example/b?c=1', true],
    ['', 'http://a.example/b?c=1', true],
    ['a.example', 'http://a.example/', true],
    ['a.example:8080', 'http://a.example:8080/', true],
    ['[::1]:80', 'http://[::1]/', true],
    ['a b', 'http://a.example/', false],
    ['a.example:port', 'http://a.example/', false],
    ['a.example/x', 'http://a.example/', false],
    [`${'a'.repeat(254)}`, 'http://a.example/', false],
    [null, 'http://[x/', false],
    ['a.example', 'http://[x/', false],
  ] as const) {
    const headers = { get: () => host }
    const read = () => readUrl({ url, headers } as unknown as Request).href
    if (isRead) expect([host, read()]).toEqual([host, url])
    else expect(read).toThrow(expect.objectContaining({ status: 400, message: HOST }))
  }
})

test('the path and the query of a URL must have valid percent-encoding and no null character', () => {
  for (const [rest, fault] of [
    ['/a%20b?c=%C3%A4', null],
    ['/%ff', 'The path must be valid percent-encoded UTF-8'],
    ['/a?b=%', 'The query must be valid percent-encoded UTF-8'],
    ['/a%00', 'The path must not contain a null character'],
    ['/a?b=%00', 'The query must not contain a null character'],
  ] as const) {
    const check = () => checkEncoding(new URL(`http://a.example${rest}`))
    if (fault === null) expect(check).not.toThrow()
    else expect(check).toThrow(expect.objectContaining({ status: 400, message: fault }))
  }
})
