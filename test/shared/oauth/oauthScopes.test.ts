import { expect, test } from 'bun:test'
import { LEAST_SCOPES, offeredScopes, readScopes } from '../../../shared/oauth/oauthScopes.ts'

const OFFERED = offeredScopes([])
const read = (text: string | null) => readScopes(text, OFFERED)

test.each([null, '', ' ', 'offline_access', 'offline_access  offline_access'])(
  'an app that asks for %p gets the least scopes',
  (text) => expect(read(text)).toEqual([...LEAST_SCOPES]),
)

test('an app gets those of its scopes that the service offers, in the order of the service, each once', () => {
  const [first, second] = OFFERED
  expect(read(`${second} ${first}  ${second} offline_access`)).toEqual([first!, second!])
})

test('an app gets no scope if it asks only for known scopes that the service does not offer', () => {
  expect(read('platform:manage')).toEqual([])
  expect(read('purse:pay')).toEqual([])
  expect(readScopes('purse:pay', offeredScopes(['purse:pay']))).toEqual(['purse:pay'])
})

test.each(['admin', 'mail:Read', 'mail:read,mail:send', '__proto__'])(
  'the scopes of an app are unknown if it asks only for %p',
  (text) => expect(read(text)).toBeNull(),
)

test('an app that asks for one-time codes also asks to read mail, because an owner gives codes only with mail', () => {
  expect(read('mail:codes')).toEqual(['mail:read', 'mail:codes'])
})

test('an unknown scope beside a known scope is left out', () => {
  expect(read('admin mail:read')).toEqual(['mail:read'])
})
