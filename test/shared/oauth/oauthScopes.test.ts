import { expect, test } from 'bun:test'
import { LEAST_SCOPES, offeredScopes, readScopes } from '../../../shared/oauth/oauthScopes.ts'

const OFFERED = offeredScopes([])
const read = (text: string | null) => readScopes(text, OFFERED)

test.each([null, '', ' ', 'offline_access', 'offline_access  offline_access'])(
  'an OAuth app that requests the scopes %p gets the smallest set of scopes',
  (text) => expect(read(text)).toEqual([...LEAST_SCOPES]),
)

test('an OAuth app gets those of its requested scopes that the service offers, each once, in the service’s order', () => {
  const [first, second] = OFFERED
  expect(read(`${second} ${first}  ${second} offline_access`)).toEqual([first!, second!])
})

test('an OAuth app gets no scope if it requests only known scopes that the service does not offer', () => {
  expect(read('platform:manage')).toEqual([])
  expect(read('purse:pay')).toEqual([])
  expect(readScopes('purse:pay', offeredScopes(['purse:pay']))).toEqual(['purse:pay'])
})

test.each(['admin', 'mail:Read', 'mail:read,mail:send', '__proto__'])(
  'if an OAuth app requests only %p, its scopes are unknown',
  (text) => expect(read(text)).toBeNull(),
)

test('an OAuth app that requests one-time codes also gets the request to read mail, because an owner grants codes only with mail', () => {
  expect(read('mail:codes')).toEqual(['mail:read', 'mail:codes'])
})

test('an unknown scope beside a known scope in a request is ignored', () => {
  expect(read('admin mail:read')).toEqual(['mail:read'])
})
