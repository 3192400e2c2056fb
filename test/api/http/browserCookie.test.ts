/** Tests the cookies that tie a sign-in to its browser. */
import { expect, test } from 'bun:test'
import {
  browserHeaders,
  proofCookie,
  readBrowser,
  readProof,
} from '../../../api/http/browserCookie.ts'

const SECRET = 'Ab_-'.repeat(10).concat('xyz')
const HTTPS = 'https://mail.example.com'
const HTTP = 'http://localhost:3000'
const asking = (cookie: string) => new Request(HTTPS, { headers: { cookie } })

test('over HTTPS the cookie names begin with __Host-, so that no other host of the domain can set these cookies', () => {
  expect(browserHeaders(HTTPS, SECRET)['set-cookie']).toBe(
    `__Host-purser_browser=${SECRET}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax; Secure`,
  )
  expect(proofCookie(HTTPS, SECRET)).toBe(
    `__Host-purser_known=${SECRET}; Max-Age=15552000; Path=/; HttpOnly; SameSite=Strict; Secure`,
  )
  expect(readProof(asking(`purser_known=${SECRET}`), HTTPS)).toBeNull()
})

test('over HTTP the cookie names have no prefix, and the cookies are not marked Secure', () => {
  expect(browserHeaders(HTTP, SECRET)['set-cookie']).toBe(
    `purser_browser=${SECRET}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax`,
  )
  expect(readBrowser(asking(`purser_browser=${SECRET}`), HTTP)).toBe(SECRET)
})

test('the service finds a cookie by its exact name, and ignores it unless its value has 43 characters of base64url', () => {
  const cookies = `a=1; __Host-purser_known=${SECRET}; __Host-purser_browser=${SECRET.replace('x', 'y')}`
  expect(readProof(asking(cookies), HTTPS)).toBe(SECRET)
  expect(readBrowser(asking(cookies), HTTPS)).toBe(SECRET.replace('x', 'y'))
  for (const wrong of ['', SECRET.slice(1), `${SECRET}x`, SECRET.replace('x', '+')]) {
    expect(readProof(asking(`__Host-purser_known=${wrong}`), HTTPS)).toBeNull()
  }
  expect(readProof(new Request(HTTPS), HTTPS)).toBeNull()
})
