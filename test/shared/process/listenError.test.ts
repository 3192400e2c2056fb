import { expect, test } from 'bun:test'
import { ConfigError } from '../../../shared/config/config.ts'
import { listenError } from '../../../shared/process/listenError.ts'

const ADDRESS = { portVariable: 'PORT', port: 80, hostVariable: 'HOST', host: '192.0.2.1' }
const coded = (code: string) => Object.assign(new Error('listen'), { code })

test.each([
  ['EADDRINUSE', /^PORT: port 80 of 192.0.2.1 is taken/],
  ['EACCES', /^PORT: port 80 is not allowed for this user/],
  ['EADDRNOTAVAIL', /^HOST: 192.0.2.1 is no address of this machine/],
  ['ENOTFOUND', /^HOST: 192.0.2.1 is no address of this machine/],
])('if listening on an address fails with %s, the error names the setting', (code, message) => {
  const error = listenError(coded(code), ADDRESS) as Error
  expect(error).toBeInstanceOf(ConfigError)
  expect(error.message).toMatch(message)
})

test('if listening on an address fails with an error that is not about the address, the error is returned unchanged', () => {
  for (const error of [coded('EMFILE'), new Error('x'), { code: 'EACCES' }, 'EACCES', undefined]) {
    expect(listenError(error, ADDRESS)).toBe(error)
  }
})
