/** Verifies payment receipts with an independent library and the public keys that the service publishes. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { verify } from 'node:crypto'
import { compactVerify, createLocalJWKSet, decodeProtectedHeader, importJWK } from 'jose'
import { canonicalJson } from '../../../../shared/canonicalJson.ts'
import { type Agent, startTestService } from '../../../support/service.ts'
import {
  pay,
  payer,
  redeem,
  startTestTill,
  type TestTill,
  type TillWorker,
} from '../../../support/till/till.ts'

let till: TestTill
let seller: Agent
let worker: TillWorker
const seed = (fill: number) => ({ id: `key-${fill}`, seed: new Uint8Array(32).fill(fill) })

beforeAll(async () => {
  till = await startTestTill({ worker: false, env: { BASE_URL: 'https://till.example.com' } })
  worker = await till.startWorker({ receiptSeeds: [seed(1)] })
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

const published = async (path: string) =>
  (await fetch(till.service.url + path)).json() as Promise<any>
const receiptOf = async () => {
  const { body } = await redeem(seller, (await pay()).header)
  expect(body.ok).toBe(true)
  return body.signedReceipt
}

async function expectGenuine(receipt: any): Promise<void> {
  const jwks = await published('/.well-known/jwks.json')
  const { payload } = await compactVerify(receipt.jws, createLocalJWKSet(jwks))
  expect(JSON.parse(new TextDecoder().decode(payload))).toMatchObject({
    version: 1,
    network: 'eip155:84532',
    payer: payer.address,
    paymentId: receipt.body.paymentId,
    transaction: receipt.body.txHash,
    resourceUrl: receipt.body.resource,
  })
  const jwk = jwks.keys.find((key: any) => key.kid === decodeProtectedHeader(receipt.jws).kid)
  const { createPublicKey } = await import('node:crypto')
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  const text = Buffer.from(canonicalJson(receipt.body))
  expect(verify(null, text, key, Buffer.from(receipt.signature, 'base64'))).toBe(true)
  await importJWK(jwk, 'EdDSA')
}

test('the published keys verify a receipt, and do not verify a changed receipt', async () => {
  const receipt = await receiptOf()
  await expectGenuine(receipt)
  expect(receipt.did).toBe('did:web:till.example.com')
  const [header, payload, signature] = receipt.jws.split('.')
  const changed = `${header}.${Buffer.from(
    Buffer.from(payload, 'base64url').toString().replace('10000', '99999'),
  ).toString('base64url')}.${signature}`
  const jwks = createLocalJWKSet(await published('/.well-known/jwks.json'))
  await expect(compactVerify(changed, jwks)).rejects.toThrow()
})

test('before a payment worker has published a key, the service has no DID document and an empty set of keys', async () => {
  await using fresh = await startTestService({ smtp: false, workers: false })
  expect((await fetch(`${fresh.url}/.well-known/did.json`)).status).toBe(404)
  expect(await (await fetch(`${fresh.url}/.well-known/jwks.json`)).json()).toEqual({ keys: [] })
})

test('the published key documents contain only public keys, and may be cached', async () => {
  const response = await fetch(`${till.service.url}/.well-known/jwks.json`)
  expect(response.headers.get('cache-control')).toContain('public')
  const text = await response.text()
  expect(JSON.parse(text).keys).toHaveLength(1)
  expect(text).not.toMatch(/"d"|seed/)
  const did = await published('/.well-known/did.json')
  expect(did.id).toBe('did:web:till.example.com')
  expect(did.assertionMethod).toHaveLength(2)
})

test('the DID documents of the service contain each key both as a JWK with its algorithm and in multibase form', async () => {
  const receipt = await receiptOf()
  const path = `/identities/${seller.project.id}/did.json`
  const [own, ofProject] = [await published('/.well-known/did.json'), await published(path)]
  for (const { verificationMethod, assertionMethod } of [own, ofProject]) {
    const [jwk, multikey] = verificationMethod
    for (const method of [jwk, multikey]) {
      expect(method.publicKeyMultibase).toBe(receipt.publicKey)
    }
    expect(assertionMethod).toEqual([jwk.id, multikey.id])
    // The library jose refuses a public key that does not name its algorithm, so the published key must name it.
    const { payload } = await compactVerify(receipt.jws, await importJWK(jwk.publicKeyJwk))
    expect(JSON.parse(new TextDecoder().decode(payload)).paymentId).toBe(receipt.body.paymentId)
  }
  expect([ofProject.id, ofProject.controller]).toEqual([
    `did:web:till.example.com:identities:${seller.project.id}`,
    'did:web:till.example.com',
  ])
  expect((await published('/identities/prj_none/did.json')).error).toBe('not_found')
})

test('web pages of every origin may read public documents such as the public keys, but no other response of the service', async () => {
  const open = async (path: string) => {
    const { headers } = await fetch(till.service.url + path)
    return [path, headers.get('access-control-allow-origin')]
  }
  for (const path of [
    '/.well-known/jwks.json',
    '/.well-known/did.json',
    `/identities/${seller.project.id}/did.json`,
    '/identities/prj_none/did.json',
    '/openapi.json',
    '/v0/x402/discovery/resources',
    '/v0/x402/discovery/search?query=a',
  ]) {
    expect(await open(path)).toEqual([path, '*'])
  }
  const preflight = (path: string) =>
    fetch(till.service.url + path, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://page.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization,x-own',
      },
    })
  for (const path of ['/.well-known/jwks.json', '/openapi.json', '/v0/x402/discovery/resources']) {
    const { status, headers } = await preflight(path)
    expect([path, status, headers.get('access-control-allow-origin')]).toEqual([path, 204, '*'])
    expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD')
    expect(headers.get('access-control-allow-headers')).toBe('*, Authorization')
  }
  for (const path of ['/v0/whoami', '/v0/payments', '/v0/x402/supported', '/healthz', '/none']) {
    expect(await open(path)).toEqual([path, null])
    expect((await preflight(path)).headers.get('access-control-allow-origin')).toBeNull()
    expect((await preflight(path)).status).toBe(path === '/none' ? 404 : 405)
  }
})

test('a new key signs new receipts, and receipts of the old key stay valid even after the old key is removed from the settings', async () => {
  const old = await receiptOf()
  await worker.stop()
  worker = await till.startWorker({ receiptSeeds: [seed(2), seed(1)] })
  const rotated = await receiptOf()
  expect(rotated.publicKeyHex).not.toBe(old.publicKeyHex)
  await worker.stop()
  worker = await till.startWorker({ receiptSeeds: [seed(2)] })
  const { keys } = await published('/.well-known/jwks.json')
  expect(keys).toHaveLength(2)
  expect(keys[0].kid).toBe(decodeProtectedHeader(rotated.jws).kid)
  await expectGenuine(old)
  await expectGenuine(rotated)
})

test('in production the service starts only with settings for an RPC URL and for valid settlement, receipt and master keys', async () => {
  const { parseConfig } = await import('../../../../shared/config/config.ts')
  const production = {
    NODE_ENV: 'production',
    SMTP_RELAY_URL: 'smtp://relay.example.com',
    RPC_URL: 'https://rpc.example.com',
    SETTLEMENT_KEYS: `0x${'11'.repeat(32)}`,
    RECEIPT_SIGNING_KEYS: `first:${Buffer.alloc(32, 7).toString('base64')}`,
    MASTER_KEYS: `first:${Buffer.alloc(32, 8).toString('base64')}`,
  }
  expect(parseConfig(production).receiptSeeds?.[0]?.id).toBe('first')
  for (const [name, value] of [
    ['RPC_URL', ''],
    ['SETTLEMENT_KEYS', ''],
    ['SETTLEMENT_KEYS', '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'],
    ['SETTLEMENT_KEYS', 'nonsense'],
    ['RECEIPT_SIGNING_KEYS', ''],
    ['RECEIPT_SIGNING_KEYS', 'first:c2hvcnQ='],
    ['MASTER_KEYS', ''],
    ['MASTER_KEYS', 'first:c2hvcnQ='],
  ] as const) {
    const line = expect(() => parseConfig({ ...production, [name]: value }))
    line.toThrow(new RegExp(`^${name}: .*must`))
    if (value !== '') expect(() => parseConfig({ ...production, [name]: value })).not.toThrow(value)
  }
})
