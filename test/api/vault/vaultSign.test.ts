/** Tests signatures that the API makes with signing keys of the vault. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { signAwsRequest } from '../../../shared/vault/sigV4.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const store = async (name: string, type: string, data: object, more: object = {}) =>
  expect((await agent.put(path(name), { type, data, ...more })).status).toBe(200)
const sign = (name: string, input: object) => agent.post(path(name, '/sign'), input)

test('a withheld key (hidden from the agent) can still make HMAC-SHA256 and Ed25519 signatures, which equal the examples of RFC 4231 and RFC 8032', async () => {
  const reveal = { reveal: 'owner' }
  await store('mac', 'CUSTOM', { hmacKey: '0b'.repeat(20) }, reveal)
  const given = { algorithm: 'hmac-sha256', field: 'hmacKey', keyEncoding: 'hex', text: 'Hi There' }
  expect((await sign('mac', given)).body).toEqual({
    algorithm: 'hmac-sha256',
    signatureHex: 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    signatureBase64: 'sDRMYdjbOFNcqK/OrwvxK4gdwgDJgz2nJuk3bC4yz/c=',
  })
  const privateKey = '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb'
  await store('ssh', 'SSH_KEY', { privateKey }, reveal)
  const signed = await sign('ssh', { algorithm: 'ed25519', text: '72', textEncoding: 'hex' })
  expect(signed.body.publicKeyHex).toBe(
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
  )
  expect(signed.body.signatureHex).toStartWith('92a009a9f0d4cab8720e820b5f642540')
  expect((await agent.get(path('ssh'))).status).toBe(403)
})

test('an AWS request to an allowed host is signed, and the result contains a placeholder instead of the session token', async () => {
  const data = {
    accessKeyId: 'AKIDEXAMPLE',
    secretAccessKey: 's'.repeat(40),
    sessionToken: 'tok-en',
  }
  await store('aws', 'AWS', data, { allowedHosts: ['*.amazonaws.com'], reveal: 'owner' })
  const given = (url: string) => ({
    ...{ algorithm: 'aws-sigv4', region: 'us-east-1', service: 's3', request: { url } },
  })
  const { status, body } = await sign('aws', given('https://b.s3.amazonaws.com/k'))
  expect(status).toBe(200)
  expect(body.headers).toEqual({
    authorization: expect.stringMatching(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/us-east-1\/s3\/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=[\da-f]{64}$/,
    ),
    'x-amz-date': expect.stringMatching(/^\d{8}T\d{6}Z$/),
    'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'x-amz-security-token': '{{sessionToken}}',
  })
  // The AWS signature covers the real session token, although the result contains only a placeholder for the token.
  const time = body.headers['x-amz-date'].replace(
    /(....)(..)(..)T(..)(..)(..)Z/,
    '$1-$2-$3T$4:$5:$6Z',
  )
  const request = { method: 'GET', url: 'https://b.s3.amazonaws.com/k', headers: {}, body: '' }
  const again = signAwsRequest(
    { ...request, region: 'us-east-1', service: 's3' },
    data,
    new Date(time),
  )
  expect(body.headers.authorization).toBe(again.authorization!)
  expect((await sign('aws', given('https://evil.test/k'))).status).toBe(403)
})

test('an AWS request with a body and no method is signed as a POST, because the service sends such a request as a POST', async () => {
  const data = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 's'.repeat(40) }
  await store('sqs', 'AWS', data, { allowedHosts: ['*.amazonaws.com'], allowedMethods: ['POST'] })
  const url = 'https://sqs.us-east-1.amazonaws.com/'
  const aws = { algorithm: 'aws-sigv4', region: 'us-east-1', service: 'sqs' }
  const { status, body } = await sign('sqs', { ...aws, request: { url, body: '{}' } })
  expect([status, body.message]).toEqual([200, undefined])
  const [, y, mo, d, h, mi, s] = /^(.{4})(..)(..)T(..)(..)(..)Z$/.exec(body.headers['x-amz-date'])!
  const post = { method: 'POST', url, headers: {}, body: '{}', region: 'us-east-1', service: 'sqs' }
  expect(body.headers).toEqual(
    signAwsRequest(
      post,
      { ...data, sessionToken: null },
      new Date(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`),
    ),
  )
})

test('an invalid signature request gets status 400 with the field name, and adds an entry to the audit log', async () => {
  await store('login', 'LOGIN', { password: 'long enough for a key' })
  await store('short', 'API_KEY', { secret: 'short' })
  await store('custom', 'CUSTOM', {
    password: 'long enough for a key',
    Password: 'long enough too',
  })
  const { privateKey: foreign } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  await store('foreign', 'SSH_KEY', {
    privateKey: foreign.export({ type: 'pkcs8', format: 'pem' }),
  })
  const text = { algorithm: 'hmac-sha256', text: 'x' }
  const cases: [string, object, string][] = [
    [
      'foreign',
      { algorithm: 'ed25519', text: 'x' },
      'The field must hold an Ed25519 key: PKCS #8 in PEM, or 32 bytes in hex or base64',
    ],
    [
      'login',
      { ...text, field: 'password' },
      'field must name a text of the credential that may sign; of LOGIN: none',
    ],
    ...['password', 'Password'].map((field): [string, object, string] => [
      ...(['custom', { ...text, field }] as const),
      'field must name a text of the credential that may sign; of CUSTOM: secret, key, signingSecret, signingKey, webhookSecret, hmacKey',
    ]),
    ['short', text, 'field must hold a key of at least 16 bytes'],
    ['short', { ...text, keyEncoding: 'hex' }, 'The value of field must be hex'],
    ['short', { algorithm: 'hmac-sha256' }, 'text must be present with the algorithm hmac-sha256'],
    [
      'short',
      { algorithm: 'ed25519', text: 'x' },
      'The field must hold an Ed25519 key: PKCS #8 in PEM, or 32 bytes in hex or base64',
    ],
    ['short', { algorithm: 'aws-sigv4' }, 'request must be present with the algorithm aws-sigv4'],
    [
      'short',
      { algorithm: 'rot13' },
      'algorithm must be one of "hmac-sha256", "ed25519", "aws-sigv4"',
    ],
  ]
  await store('halves', 'CUSTOM', { accessKeyId: 'AKIDEXAMPLE', secretKey: 's' })
  await store('aws', 'AWS', { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 's'.repeat(40) })
  const url = 'https://b.s3.amazonaws.com/k'
  const aws = { algorithm: 'aws-sigv4', region: 'us-east-1', service: 's3', request: { url } }
  const word = 'must be 1 to 64 lower-case letters, digits and hyphens'
  const { region, ...homeless } = aws
  cases.push(
    ['aws', homeless, `region ${word}`],
    ['aws', { ...aws, region: 'us_east' }, `region ${word}`],
    ['aws', { ...aws, service: 'S3' }, `service ${word}`],
    ['halves', aws, 'The credential must hold data.accessKeyId and data.secretAccessKey'],
    [
      'aws',
      { ...aws, request: { url, body: { a: 1 } } },
      'request.body must be a string: its bytes are signed',
    ],
    [
      'aws',
      { ...aws, request: { url, headers: { 'x-note': '{{secretAccessKey}}' } } },
      'request must hold no placeholder: its bytes are signed',
    ],
    // A header may have the name of another part of the request.
    [
      'aws',
      { ...aws, request: { url: `${url}/{{accessKeyId}}`, headers: { url } } },
      'request must hold no placeholder: its bytes are signed',
    ],
    [
      'aws',
      { ...aws, request: { url, body: '{{accessKeyId}}', headers: { body: 'b' } } },
      'request must hold no placeholder: its bytes are signed',
    ],
  )
  for (const [name, input, message] of cases) {
    const { status, body } = await sign(name, input)
    expect([status, body.message]).toEqual([400, message])
  }
  expect((await sign('absent', text)).status).toBe(404)
  await store('shortest', 'API_KEY', { secret: 'x'.repeat(16) })
  expect((await sign('shortest', text)).status).toBe(200)
  const { logs } = (await agent.get('/v0/logs?action=vault.sign&outcome=refused&subject=short'))
    .body
  expect(logs.map(({ description }: any) => description)).toEqual([
    ...['aws-sigv4', 'ed25519', 'hmac-sha256', 'hmac-sha256', 'hmac-sha256'],
  ])
})
