/**
 * Tests which sign-in challenges of a seller a purse (a project's wallet) signs, and the content of the signed text.
 */
import { describe, expect, test } from 'bun:test'
import { recoverMessageAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { DigestSigner } from '../../../shared/purse/paymentHeader.ts'
import { readSignIn, type SignIn, signInHeader } from '../../../shared/purse/signIn.ts'

const NOW_MS = Date.parse('2026-11-25T12:00:00.000Z')
const CAIP2 = 'eip155:84532'
const URL_PAID = 'https://seller.example:8443/weather?city=Lima'
const INFO = {
  domain: 'seller.example:8443',
  uri: 'https://seller.example:8443/sign-in',
  version: '1',
  nonce: 'a1b2c3d4',
  issuedAt: '2026-11-25T12:00:00.000Z',
}
const CHAINS = [{ chainId: CAIP2, type: 'eip191' }]
const account = privateKeyToAccount(`0x${'5e'.repeat(32)}`)
const signer: DigestSigner = {
  address: account.address.toLowerCase() as `0x${string}`,
  sign: (hash) => account.sign({ hash }),
}

const at = (shiftMs: number) => new Date(NOW_MS + shiftMs).toISOString()

function read(changes: object = {}, { url = URL_PAID, supportedChains = CHAINS as unknown } = {}) {
  const challenge = { info: { ...INFO, ...changes }, supportedChains }
  return readSignIn({ 'sign-in-with-x': challenge }, { url, caip2: CAIP2, nowMs: NOW_MS })
}
const isRead = (...given: Parameters<typeof read>) => read(...given) !== null

/** Returns the decoded content of a sign-in header. */
async function signed(signIn: SignIn) {
  const { name, value } = await signInHeader(signIn, signer)
  return { name, content: JSON.parse(Buffer.from(value, 'base64').toString('utf8')) }
}

describe('a purse (wallet) refuses a sign-in challenge that is not for the requested URL, or is malformed or too old', () => {
  test('the purse (wallet) reads a sign-in challenge from the extension `sign-in-with-x`, and keeps its members unchanged', () => {
    expect(read()).toEqual({ info: INFO, caip2: CAIP2 } as never)
    expect(read({ unknown: 1 })).toEqual({ info: INFO, caip2: CAIP2 } as never)
    for (const extensions of [null, undefined, {}, 'text', { 'sign-in-with-x': null }])
      expect(readSignIn(extensions, { url: URL_PAID, caip2: CAIP2, nowMs: NOW_MS })).toBeNull()
  })

  test('a sign-in challenge must name the host and the port of the requested URL', () => {
    for (const domain of ['seller.example', 'seller.example:443', 'other.example:8443', ''])
      expect([domain, isRead({ domain })]).toEqual([domain, false])
    const url = 'https://seller.example/weather'
    const uri = 'https://seller.example/'
    expect(isRead({ domain: 'seller.example', uri }, { url })).toBe(true)
  })

  test('a sign-in challenge must have a `uri` of the same origin as the requested URL', () => {
    expect(isRead({ uri: 'https://seller.example:8443' })).toBe(true)
    for (const uri of [
      'http://seller.example:8443/sign-in',
      'https://seller.example/sign-in',
      'https://seller.example:8443.other.example/',
      'ftp://seller.example:8443/',
      '/sign-in',
    ])
      expect([uri, isRead({ uri })]).toEqual([uri, false])
    const path = 'x'.repeat(2_048 - 'https://seller.example:8443/'.length)
    expect(isRead({ uri: `https://seller.example:8443/${path}` })).toBe(true)
    expect(isRead({ uri: `https://seller.example:8443/${path}x` })).toBe(false)
  })

  test('a sign-in challenge must support EIP-191 signatures on the chain of the purse (wallet)', () => {
    const other = [
      { chainId: 'eip155:1', type: 'eip191' },
      { chainId: CAIP2, type: 'eip1271' },
    ]
    const supports = (supportedChains: unknown) => isRead({}, { supportedChains })
    expect(supports([...other, ...CHAINS])).toBe(true)
    for (const chains of [other, [], null, [null], [{ chainId: 84532, type: 'eip191' }]])
      expect(supports(chains)).toBe(false)
    const many = Array.from({ length: 31 }, () => other[0])
    expect(supports([...many, ...CHAINS])).toBe(true)
    expect(supports([...many, other[0], ...CHAINS])).toBe(false)
  })

  test('a sign-in challenge is at most 5 minutes old, and at most 1 minute ahead of the clock', () => {
    const isTimely = (shiftMs: number) => isRead({ issuedAt: at(shiftMs) })
    expect([-300_001, -300_000, 60_000, 60_001].map(isTimely)).toEqual([false, true, true, false])
  })

  test('a sign-in challenge is valid from its `notBefore` until its `expirationTime`', () => {
    const shifts = [-1, 0, 1]
    expect(shifts.map((ms) => isRead({ expirationTime: at(ms) }))).toEqual([false, false, true])
    expect(shifts.map((ms) => isRead({ notBefore: at(ms) }))).toEqual([true, true, false])
  })

  test('the times of a sign-in challenge are in UTC with milliseconds', () => {
    for (const time of ['2026-11-25T12:00:00Z', '2026-11-25T12:00:00.000+00:00', 'now', 7]) {
      expect([time, isRead({ issuedAt: time })]).toEqual([time, false])
      expect([time, isRead({ notBefore: time })]).toEqual([time, false])
    }
  })

  test('a sign-in challenge has version 1 and a nonce of 8 to 128 letters and digits', () => {
    for (const nonce of ['x'.repeat(8), 'x'.repeat(128)]) expect(isRead({ nonce })).toBe(true)
    for (const nonce of ['x'.repeat(7), 'x'.repeat(129), 'a1b2-c3d4', 'a1b2c3d4\n'])
      expect([nonce, isRead({ nonce })]).toEqual([nonce, false])
    for (const version of ['2', 1, undefined]) expect(isRead({ version })).toBe(false)
  })

  test('the texts of a sign-in challenge are single lines of printable ASCII with a limited length', () => {
    const limits = { statement: 500, requestId: 200 }
    for (const [member, max] of Object.entries(limits)) {
      for (const text of ['', 'Sign in. ~', 'x'.repeat(max)])
        expect(isRead({ [member]: text })).toBe(true)
      for (const text of ['x'.repeat(max + 1), 'a\nURI: https://bank.example', 'é', '\x7f', null])
        expect([text, isRead({ [member]: text })]).toEqual([text, false])
    }
  })

  test('a sign-in challenge lists at most 16 resources, which are URLs', () => {
    const resources = Array.from({ length: 16 }, (_, n) => `https://seller.example/${n}`)
    expect(isRead({ resources })).toBe(true)
    expect(isRead({ resources: [] })).toBe(true)
    for (const wrong of [[...resources, URL_PAID], ['/weather'], URL_PAID, [7]])
      expect(isRead({ resources: wrong })).toBe(false)
  })
})

describe('a purse (wallet) writes a sign-in header whose signature covers the whole challenge', () => {
  test('the sign-in header repeats the challenge, and names the purse’s address and chain', async () => {
    const { name, content } = await signed(read()!)
    const { signature, ...rest } = content
    expect(name).toBe('SIGN-IN-WITH-X')
    expect(rest).toEqual({ ...INFO, address: account.address, chainId: CAIP2, type: 'eip191' })
    expect(signature).toMatch(/^0x[0-9a-f]{130}$/)
  })

  test('the purse (wallet) signs an EIP-4361 text that contains only the members of the sign-in challenge', async () => {
    const { content } = await signed(read()!)
    const message = [
      'seller.example:8443 wants you to sign in with your Ethereum account:',
      account.address,
      '',
      '',
      'URI: https://seller.example:8443/sign-in',
      'Version: 1',
      'Chain ID: 84532',
      'Nonce: a1b2c3d4',
      'Issued At: 2026-11-25T12:00:00.000Z',
    ].join('\n')
    const { signature } = content
    expect(await recoverMessageAddress({ message, signature })).toBe(account.address)
  })

  test('the purse’s sign-in signature covers every optional member of the challenge', async () => {
    const more = {
      statement: 'Sign in to read.',
      expirationTime: at(1_000),
      notBefore: at(-1_000),
      requestId: 'r-1',
      resources: [URL_PAID, 'https://seller.example/terms'],
    }
    const { content } = await signed(read(more)!)
    expect(content).toMatchObject(more)
    const message = [
      'seller.example:8443 wants you to sign in with your Ethereum account:',
      account.address,
      '',
      'Sign in to read.',
      '',
      'URI: https://seller.example:8443/sign-in',
      'Version: 1',
      'Chain ID: 84532',
      'Nonce: a1b2c3d4',
      'Issued At: 2026-11-25T12:00:00.000Z',
      'Expiration Time: 2026-11-25T12:00:01.000Z',
      'Not Before: 2026-11-25T11:59:59.000Z',
      'Request ID: r-1',
      'Resources:',
      `- ${URL_PAID}`,
      '- https://seller.example/terms',
    ].join('\n')
    const { signature } = content
    expect(await recoverMessageAddress({ message, signature })).toBe(account.address)
  })
})
