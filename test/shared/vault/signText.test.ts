/** Tests the keys and the messages that the vault accepts when it signs a text. */
import { describe, expect, test } from 'bun:test'
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { CredentialInputError } from '../../../shared/vault/credential.ts'
import {
  hmacSha256,
  readBytes,
  readEd25519Key,
  signEd25519,
  signingField,
} from '../../../shared/vault/signText.ts'

/** Holds the first key of RFC 8032 §7.1, with its public key and its signature of the empty message. */
const SEED = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'
const PUBLIC = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const SIGNATURE =
  'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b'
const KEY_FAULT = 'The field must hold an Ed25519 key: PKCS #8 in PEM, or 32 bytes in hex or base64'

/** Returns the error text for a value, or null if the value is accepted. */
function faultOf(act: () => void): string | null {
  try {
    act()
  } catch (error) {
    if (error instanceof CredentialInputError) return error.message
    throw error
  }
  return null
}

describe('a signature uses the requested field of a credential, or else the first text field', () => {
  const text = (type: string, data: Record<string, unknown>, wanted?: string) =>
    signingField('hmac', { type, data }, wanted)
  const fieldFault = (type: string, data: Record<string, unknown>, wanted?: string) =>
    faultOf(() => text(type, data, wanted))

  test('signatures by the vault use by default the first field of the credential type that contains a text', () => {
    expect(text('API_KEY', { key: 'k', secret: 's' })).toBe('s')
    expect(text('API_KEY', { key: 'k', secret: 7 })).toBe('k')
    expect(text('OAUTH', { clientSecret: 'c' })).toBe('c')
    expect(signingField('ed25519', { type: 'SSH_KEY', data: { privateKey: 'p' } }, undefined)).toBe(
      'p',
    )
  })

  test('signatures by the vault use the requested credential field if this field may be used for signatures', () => {
    expect(text('API_KEY', { key: 'k', secret: 's' }, 'key')).toBe('k')
    expect(text('CUSTOM', { webhookSecret: 'w' }, 'webhookSecret')).toBe('w')
  })

  test('if a credential has no field that may be used for signatures, the error names the possible fields', () => {
    const rule = 'field must name a text of the credential that may sign; of '
    expect(fieldFault('API_KEY', { other: 'x' })).toBe(`${rule}API_KEY: secret, key`)
    expect(fieldFault('API_KEY', { secret: 's' }, 'key')).toBe(`${rule}API_KEY: secret, key`)
    expect(fieldFault('API_KEY', { key: 7 }, 'key')).toBe(`${rule}API_KEY: secret, key`)
    expect(fieldFault('CUSTOM', { password: 'p' }, 'password')).toStartWith(`${rule}CUSTOM: `)
    expect(fieldFault('LOGIN', { password: 'p' }, 'password')).toBe(`${rule}LOGIN: none`)
    expect(fieldFault('API_KEY', Object.create({ key: 'k' }))).toBe(`${rule}API_KEY: secret, key`)
  })
})

describe('a text to be signed is read as UTF-8, hexadecimal or base64', () => {
  const bytes = (text: string, encoding: 'utf8' | 'base64' | 'hex') =>
    readBytes('message', text, encoding).toString('hex')

  test('a UTF-8 text to be signed is converted to bytes with all its characters, blanks included', () => {
    expect(bytes(' ä\n', 'utf8')).toBe('20c3a40a')
    expect(bytes('', 'utf8')).toBe('')
  })

  test('hexadecimal text to be signed may have blanks between the digits', () => {
    expect(bytes(' 00 fF\n', 'hex')).toBe('00ff')
    for (const text of ['0', '0g', '0x00', '00-ff']) {
      expect(faultOf(() => bytes(text, 'hex'))).toBe('message must be hex')
    }
  })

  test('base64 text to be signed may have the URL alphabet, and needs no padding', () => {
    expect(bytes('+/-_ AA==', 'base64')).toBe('fbffbf00')
    expect(bytes('AA', 'base64')).toBe('00')
    for (const text of ['AA===', 'A=A', 'AA!', 'ä', 'A', 'AAAAA', 'AAAA=']) {
      expect(faultOf(() => bytes(text, 'base64'))).toBe('message must be base64')
    }
  })
})

test('HMAC-SHA256 signatures equal the second example of RFC 4231', () => {
  const digest = hmacSha256(Buffer.from('Jefe'), Buffer.from('what do ya want for nothing?'))
  expect(digest.toString('hex')).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  )
})

describe('an Ed25519 key is accepted in hexadecimal, base64 or PEM', () => {
  const seed = Buffer.from(SEED, 'hex')
  const signed = (text: string) => {
    const { signature, publicKey } = signEd25519(readEd25519Key(text), new Uint8Array())
    return [signature.toString('hex'), publicKey.toString('hex')]
  }

  test('an Ed25519 key is read from 32 bytes in hexadecimal digits or base64', () => {
    for (const text of [
      SEED,
      ` ${SEED.toUpperCase()}\n`,
      seed.toString('base64'),
      seed.toString('base64url'),
    ]) {
      expect(signed(text)).toEqual([SIGNATURE, PUBLIC])
    }
  })

  test('an Ed25519 key is read from PKCS #8 in PEM', () => {
    const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
    const pem = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({
      format: 'pem',
      type: 'pkcs8',
    })
    expect(signed(pem.toString())).toEqual([SIGNATURE, PUBLIC])
  })

  test('a key of another algorithm or of another length is refused as an Ed25519 key', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const other = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
    for (const text of ['', SEED.slice(2), `${SEED}00`, '-----BEGIN x', other]) {
      expect(faultOf(() => readEd25519Key(text))).toBe(KEY_FAULT)
    }
  })
})
