/** Tests the errors that the pages of the service show to a person with a browser. */
import { afterEach, expect, test } from 'bun:test'
import { authorizationOf, authorize, startOAuthService } from '../../../support/oauth.ts'
import type { TestService } from '../../../support/service.ts'

let service: TestService | undefined
afterEach(() => service?.[Symbol.asyncDispose]())

const UNKNOWN = 'a'.repeat(43)

const open = async (path: string, init?: RequestInit) => {
  const response = await fetch(service!.url + path, init)
  return { status: response.status, headers: response.headers, body: await response.text() }
}

function expectPage({ headers, body }: { headers: Headers; body: string }, words: string): void {
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(headers.get('cache-control')).toBe('no-store')
  expect(body).toContain('<h1>')
  expect(body).toContain(words)
}

test('the approval page for owners shows an HTML error page for a wrong field and for too many wrong links', async () => {
  service = await startOAuthService({ env: { RATE_LIMIT_AUTH: '2' } })
  const wrong = await open(`/approve/${UNKNOWN}?page=%3Cb%3E`)
  expect(wrong.status).toBe(400)
  expectPage(wrong, 'page')
  expect(wrong.body).not.toContain('<b>')
  const unfilled = await open(`/approve/${UNKNOWN}`, {
    method: 'POST',
    body: new URLSearchParams({ decision: 'perhaps' }),
  })
  expect(unfilled.status).toBe(400)
  expectPage(unfilled, 'decision')
  for (let n = 0; n < 2; n++) expect((await open(`/approve/${UNKNOWN}`)).status).toBe(404)
  const late = await open(`/approve/${UNKNOWN}`)
  expect(late.status).toBe(429)
  expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(0)
  expectPage(late, 'Too many requests')
})

test('while the database is unreachable, pages that people open say that the service is unavailable', async () => {
  service = await startOAuthService({ proxied: true })
  await service.proxy!.cut()
  const approval = await open(`/approve/${UNKNOWN}`)
  const consent = await authorize(service.url, authorizationOf(service.url, 'an-app'))
  for (const answer of [approval, consent]) {
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2'])
    expectPage(answer, 'temporarily unavailable')
  }
})
