import { describe, expect, test } from 'bun:test'
import { outboundUrlFault } from '../../../shared/http/outboundUrl.ts'

const fault = (url: string) => outboundUrlFault(url, false)

describe('the service may call a URL that has a public host and an allowed port', () => {
  test.each([
    'https://hook.example/path?x=1',
    'http://hook.example:80/',
    'http://hook.example:443/',
    'https://hook.example:80/',
    'https://hook.example:1024/',
    'https://hook.example:65535/',
    'https://93.184.216.34/',
    'https://[2606:2800:220:1:248:1893:25c8:1946]/',
  ])('the service may call the URL %s', (url) => expect(fault(url)).toBeNull())
})

describe('the service refuses to call a URL that has a fault, such as a private host', () => {
  test.each([
    ['not a valid URL', 'hook.example'],
    ['not a valid URL', ''],
    ['not a valid URL', 'https://hook.example:65536/'],
    ['not an http or https URL', 'ftp://hook.example/'],
    ['not an http or https URL', 'file:///etc/passwd'],
    ['not an http or https URL', 'javascript:alert(1)'],
    ['URL holds a user name or password', 'https://user@hook.example/'],
    ['URL holds a user name or password', 'https://:password@hook.example/'],
    ['address is not public', 'https://127.0.0.1/'],
    ['address is not public', 'https://2130706433/'],
    ['address is not public', 'https://169.254.169.254/latest/meta-data'],
    ['address is not public', 'https://[::1]/'],
    ['address is not public', 'https://[::ffff:10.0.0.1]/'],
    ['port is not allowed', 'https://hook.example:25/'],
    ['port is not allowed', 'http://hook.example:22/'],
    ['port is not allowed', 'https://hook.example:1023/'],
    ['port is not allowed', 'https://hook.example:0/'],
    ['port is not allowed', 'https://hook.example:79/'],
  ])('the error "%s" is given for the URL %s', (reason, url) => expect(fault(url)).toBe(reason))
})

test('in development a URL may have any address and port, but other faults of the URL are still refused', () => {
  expect(outboundUrlFault('http://127.0.0.1:25/', true)).toBeNull()
  expect(outboundUrlFault('http://[::1]:1/', true)).toBeNull()
  expect(outboundUrlFault('http://user@127.0.0.1/', true)).toBe('URL holds a user name or password')
  expect(outboundUrlFault('ftp://127.0.0.1/', true)).toBe('not an http or https URL')
})
