import { describe, expect, test } from 'bun:test'
import { isPublicAddress, judgeHost } from '../../../shared/http/publicAddress.ts'

describe('isPublicAddress tells whether an IP address is public', () => {
  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '168.63.129.15',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2606:4700:4700::1111',
    '2a00:1450:4001:82b::200e',
    '2001:200::1',
    '2001:db7:ffff::1',
    '3ffe::1',
    '::ffff:8.8.8.8',
    '::ffff:808:808',
    '0:0:0:0:0:ffff:0808:0808',
  ])('the address %s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  test.each([
    '0.0.0.0',
    '0.255.255.255',
    '10.0.0.0',
    '10.255.255.255',
    '100.64.0.0',
    '100.100.100.200',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.255.255',
    '168.63.129.16',
    '169.254.0.0',
    '169.254.169.254',
    '172.16.0.0',
    '172.31.255.255',
    '192.0.0.0',
    '192.0.0.192',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.0.0',
    '192.168.255.255',
    '198.18.0.0',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.0',
    '239.255.255.255',
    '240.0.0.0',
    '255.255.255.255',
    '::',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::8.8.8.8',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '::ffff:169.254.169.254',
    '64:ff9b::8.8.8.8',
    '64:ff9b:1::1',
    '100::1',
    '1fff::1',
    '2001::1',
    '2001:0:4136:e378::1',
    '2001:1ff::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '2002:808:808::',
    '3fff::1',
    '3fff:fff::1',
    '4000::1',
    '5f00::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
    'fec0::1',
    'ff02::1',
  ])('the address %s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each([
    '',
    'localhost',
    'example.com',
    '8.8.8',
    '8.8.8.8.8',
    '08.8.8.8',
    '0x8.8.8.8',
    '256.1.1.1',
    ' 8.8.8.8',
    '8.8.8.8\n',
    '134744072',
    '[2606:4700::1]',
    '2606:4700:',
    '2606:::1',
    '2606:4700::1::2',
    '2606:4700::g',
    '1:2:3:4:5:6:7:8:9',
    ']@evil/[',
  ])('the text %p does not count as a public address', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})

describe('judgeHost tells whether the host in a URL is public, private, or a name that the caller must resolve', () => {
  const judge = (text: string) => judgeHost(new URL(text))

  test.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://0x7f.1/',
    'http://0x7f000001/',
    'http://2130706433/',
    'http://017700000001/',
    'http://0177.0.0.1/',
    'http://127.0.0.1./',
    'http://１２７.０.０.１/',
    'http://①②⑦.0.0.1/',
    'http://0/',
    'http://0.0.0.0:8080/',
    'http://10.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://0xa9fea9fe/',
    'http://[::]/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:ffff:169.254.169.254]/',
    'http://[::127.0.0.1]/',
    'http://[fe80::1]/',
    'http://[fd00:ec2::254]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://localhost/',
    'http://LOCALHOST./',
    'http://a.localhost/',
    'http://printer.local/',
    'http://metadata.google.internal/',
    'http://metadata/',
    'http://router.lan/',
    'http://nas.home.arpa/',
  ])('the URL %s has a private host', (text) => {
    expect(judge(text)).toBe('private')
  })

  test.each(['http://8.8.8.8/', 'http://134744072/', 'https://[2606:4700:4700::1111]:8443/'])(
    'the URL %s has a public host',
    (text) => {
      expect(judge(text)).toBe('public')
    },
  )

  test.each([
    'https://example.com/',
    'https://127.0.0.1.nip.io/',
    'https://localhost.example.com/',
    'https://notlocal.example/',
    'https://xn--bcher-kva.example./',
  ])('the URL %s has a host name that must be resolved before it can be judged', (text) => {
    expect(judge(text)).toBe('name')
  })
})
