/** Compares the signatures that the vault makes with published test vectors. */
import { describe, expect, test } from 'bun:test'
import {
  hmacSha256,
  readBytes,
  readEd25519Key,
  signEd25519,
  signingField,
} from '../../../shared/vault/signText.ts'
import { signAwsRequest } from '../../../shared/vault/sigV4.ts'

const hex = (text: string) => Buffer.from(text, 'hex')

describe('HMAC-SHA256 equals the vectors of RFC 4231 §4', () => {
  test.each([
    [
      '0b'.repeat(20),
      Buffer.from('Hi There'),
      'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    ],
    [
      Buffer.from('Jefe').toString('hex'),
      Buffer.from('what do ya want for nothing?'),
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      'aa'.repeat(20),
      hex('dd'.repeat(50)),
      '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
    ],
    [
      '0102030405060708090a0b0c0d0e0f10111213141516171819',
      hex('cd'.repeat(50)),
      '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b',
    ],
    [
      'aa'.repeat(131),
      Buffer.from('Test Using Larger Than Block-Size Key - Hash Key First'),
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
    [
      'aa'.repeat(131),
      Buffer.from(
        'This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.',
      ),
      '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2',
    ],
  ])('HMAC-SHA256 with the key %s gives the signature of RFC 4231', (key, message, wanted) => {
    expect(hmacSha256(readBytes('key', key, 'hex'), message).toString('hex')).toBe(wanted)
  })
})

describe('the vault’s Ed25519 signatures equal published test vectors', () => {
  test.each([
    [
      '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      '',
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    ],
    [
      '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      '72',
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ],
    [
      'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
      'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
      'af82',
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    ],
  ])(
    'the Ed25519 signature equals the test vector of RFC 8032 §7.1 with the seed %s',
    (seed, publicKey, message, signature) => {
      for (const text of [seed, hex(seed).toString('base64')]) {
        const made = signEd25519(readEd25519Key(text), hex(message))
        expect(made.signature.toString('hex')).toBe(signature)
        expect(made.publicKey.toString('hex')).toBe(publicKey)
      }
    },
  )

  test('a malformed Ed25519 key is refused, and the error does not quote the key', () => {
    for (const text of ['', 'secret', 'ab'.repeat(31), '-----BEGIN PRIVATE KEY-----\nsecret\n']) {
      expect(() => readEd25519Key(text)).toThrow(/^The field must hold an Ed25519 key/)
    }
  })
})

/** Holds those cases of the AWS test suite for Signature Version 4 that can be written as a URL. */
describe('the vault’s AWS signatures (Version 4) equal published examples', () => {
  const keys = {
    accessKeyId: 'AKIDEXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
    sessionToken: null,
  }
  const at = new Date('2015-08-30T12:36:00Z')
  const all = '-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const form = 'application/x-www-form-urlencoded'
  type Case = [string, string, string, Record<string, string>, string, string]
  test.each<Case>([
    [
      'get-vanilla',
      'GET',
      '/',
      {},
      '',
      '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
    ],
    [
      'get-header-key-duplicate',
      'GET',
      '/',
      { 'My-Header1': 'value2,value2,value1' },
      '',
      'c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea',
    ],
    [
      'get-header-value-multiline',
      'GET',
      '/',
      { 'My-Header1': 'value1,value2,value3' },
      '',
      'ba17b383a53190154eb5fa66a1b836cc297cc0a3d70a5d00705980573d8ff790',
    ],
    [
      'get-header-value-order',
      'GET',
      '/',
      { 'My-Header1': 'value4,value1,value3,value2' },
      '',
      '08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01',
    ],
    [
      'get-header-value-trim',
      'GET',
      '/',
      { 'My-Header1': ' value1', 'My-Header2': ' "a   b   c"' },
      '',
      'acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736',
    ],
    [
      'get-unreserved',
      'GET',
      `/${all}`,
      {},
      '',
      '07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f',
    ],
    [
      'get-vanilla-empty-query-key',
      'GET',
      '/?Param1=value1',
      {},
      '',
      'a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb',
    ],
    [
      'get-vanilla-query-order-key',
      'GET',
      '/?Param1=value2&Param1=Value1',
      {},
      '',
      'eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1',
    ],
    [
      'get-vanilla-query-order-key-case',
      'GET',
      '/?Param2=value2&Param1=value1',
      {},
      '',
      'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
    ],
    [
      'get-vanilla-query-order-value',
      'GET',
      '/?Param1=value2&Param1=value1',
      {},
      '',
      '5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694',
    ],
    [
      'get-vanilla-query-unreserved',
      'GET',
      `/?${all}=${all}`,
      {},
      '',
      '9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197',
    ],
    [
      'get-vanilla-utf8-query',
      'GET',
      '/?ሴ=bar',
      {},
      '',
      '2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04',
    ],
    [
      'post-vanilla',
      'POST',
      '/',
      {},
      '',
      '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
    ],
    [
      'post-header-key-sort',
      'POST',
      '/',
      { 'My-Header1': 'value1' },
      '',
      'c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c',
    ],
    [
      'post-header-value-case',
      'POST',
      '/',
      { 'My-Header1': 'VALUE1' },
      '',
      'cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d',
    ],
    [
      'post-vanilla-query',
      'POST',
      '/?Param1=value1',
      {},
      '',
      '28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11',
    ],
    [
      'post-x-www-form-urlencoded',
      'POST',
      '/',
      { 'Content-Type': form },
      'Param1=value1',
      'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
    ],
    [
      'post-x-www-form-urlencoded-parameters',
      'POST',
      '/',
      { 'Content-Type': `${form}; charset=utf8` },
      'Param1=value1',
      '1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe',
    ],
    [
      'get-relative',
      'GET',
      '/example/..',
      {},
      '',
      '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
    ],
    [
      'get-relative-relative',
      'GET',
      '/example1/example2/../..',
      {},
      '',
      '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
    ],
    [
      'get-slash',
      'GET',
      '//',
      {},
      '',
      '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
    ],
    [
      'get-slashes',
      'GET',
      '//example//',
      {},
      '',
      '9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84',
    ],
  ])(
    'the signature equals the case %s of AWS’s test suite',
    (_name, method, path, headers, body, signature) => {
      const url = `https://example.amazonaws.com${path}`
      const request = { method, url, headers, body, region: 'us-east-1', service: 'service' }
      const { authorization } = signAwsRequest(request, keys, at)
      expect(authorization).toEndWith(`Signature=${signature}`)
    },
  )

  test('an AWS signature equals Amazon’s example for S3 GET Object', () => {
    const request = {
      ...{ method: 'GET', url: 'https://examplebucket.s3.amazonaws.com/test.txt', body: '' },
      ...{ headers: { Range: 'bytes=0-9' }, region: 'us-east-1', service: 's3' },
    }
    const s3Keys = {
      accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
      secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
      sessionToken: null,
    }
    const signed = signAwsRequest(request, s3Keys, new Date('2013-05-24T00:00:00Z'))
    expect(signed.authorization).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, ' +
        'SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, ' +
        'Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    )
  })
})

test('a credential’s field can be used for signatures only if it contains a key, not a password or a TOTP secret', () => {
  const data = { password: 'p', secret: 's', totp: 't', pin: 'o', n: 1, signingKey: 'k', key: 1 }
  expect(signingField('hmac', { type: 'API_KEY', data }, undefined)).toBe('s')
  expect(signingField('hmac', { type: 'CUSTOM', data }, 'signingKey')).toBe('k')
  for (const [type, field] of [
    ['LOGIN', 'password'],
    ['TOTP', 'secret'],
    ['LOGIN', undefined],
    ['CUSTOM', 'password'],
    ['CUSTOM', 'pin'],
    ['CUSTOM', 'key'],
    ['CUSTOM', 'totp'],
    ['CUSTOM', 'n'],
    ['CUSTOM', 'toString'],
    ['API_KEY', 'password'],
  ] as const) {
    expect(() => signingField('hmac', { type, data }, field)).toThrow(/^field must name a text/)
  }
})
