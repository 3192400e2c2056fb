/**
 * Tests the checks of the doctor (the service's self-check) for settings, database, web, webhooks, storage and chain.
 * Each check examines a real part of the service and no mock.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Config, parseConfig } from '../../../../shared/config/config.ts'
import type { Finding } from '../../../../shared/doctor/finding.ts'
import { recordBackup } from '../../../../sql/operations/backups.ts'
import { examine } from '../../../../workers/operations/doctor/examine.ts'
import { type DoctorTools, freshDns } from '../../../../workers/operations/doctor/look.ts'
import { startBucket } from '../../../support/database/bucket.ts'
import { closeServers, serve } from '../../../support/process/localServer.ts'
import { newCertificate, serveTls } from '../../../support/process/tlsServer.ts'
import { startTestTill, type TestTill } from '../../../support/till/till.ts'

let till: TestTill
let outside: number
beforeAll(async () => {
  outside = await serve((_request, response) => response.end('ip=127.0.0.1\n'))
  const env = { OUTSIDE_URL: `http://127.0.0.1:${outside}/`, ALLOW_PRIVATE_NETWORKS: 'true' }
  till = await startTestTill({ env })
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  closeServers()
})

type Section = Parameters<typeof examine>[0]

function lookAt(
  section: Section,
  change: Partial<Config> = {},
  more: Partial<DoctorTools> = {},
): Promise<Finding[]> {
  const { config, url, database } = till.service
  // The API chose its port after the settings were read. Therefore the test replaces the base URL, but only for the
  // section that calls the API.
  const http = section === 'service' ? { ...config.http, baseUrl: url } : config.http
  const base = { ...config, http }
  const own = { ...base, chain: { ...config.chain, rpcUrls: [till.rpcUrl] }, ...change }
  return examine(section, {
    config: own,
    database: { pool: database.pool },
    ...freshDns(own),
    ports: { smtp: 1, https: 1 },
    ...more,
  })
}

const of = (findings: readonly Finding[], check: string) =>
  findings.find((finding) => finding.check === check)!

test('`bun run doctor` checks a service and its database, and reports the age of the recorded backup', async () => {
  const before = await lookAt('service')
  expect(of(before, 'version').verdict).toBe('ok')
  expect(of(before, 'migrations').verdict).toBe('ok')
  // The test database runs without synchronous_commit, so that the tests are fast. The doctor (the self-check) reports
  // this as broken, because such a database may lose data.
  expect(of(before, 'synchronous_commit').verdict).toBe('broken')
  expect(of(before, 'max_connections').found).toMatch(/the service may open [1-9]\d* of \d+$/)
  expect(of(before, 'MASTER_KEYS').verdict).toBe('ok')
  expect(of(before, 'answer at BASE_URL').verdict).toBe('ok')
  expect(of(before, 'way to the outside').verdict).toBe('ok')
  expect(of(before, 'way to the inside')).toMatchObject({
    verdict: 'warning',
    fix: 'ALLOW_PRIVATE_NETWORKS=false',
  })
  expect(of(before, 'backup').found).toBe('none was recorded')
  await recordBackup(till.service.database.pool)
  expect(of(await lookAt('service'), 'backup')).toMatchObject({
    verdict: 'ok',
    found: '0 minutes ago',
  })
})

test('`bun run doctor` reports master keys that cannot decrypt the stored secrets as broken, and does not register the keys', async () => {
  const seller = await till.newSeller()
  await seller.put('/v0/vault/n', { type: 'API_KEY', data: { key: 'k' } })
  const other = parseConfig({ MASTER_KEYS: `other:${Buffer.alloc(32, 9).toString('base64')}` })
  const findings = await lookAt('service', { masterKeys: other.masterKeys })
  expect(of(findings, 'MASTER_KEYS')).toMatchObject({
    verdict: 'broken',
    found: expect.stringMatching(/^lacks "development", which encrypts stored secrets/),
  })
  const { rows } = await till.service.database.pool.query('select id from master_keys')
  expect(rows).toEqual([{ id: 'development' }])
})

test('if the database is unreachable, `bun run doctor` still makes all checks that need no database', async () => {
  const reason = 'DATABASE_URL: no database answers at 127.0.0.1:1 (ECONNREFUSED)'
  const findings = await lookAt('service', {}, { database: { pool: null, reason } })
  expect(of(findings, 'connection')).toMatchObject({
    verdict: 'broken',
    found: 'no database answers at 127.0.0.1:1 (ECONNREFUSED)',
  })
  expect(of(findings, 'answer at BASE_URL').verdict).toBe('ok')
})

test('`bun run doctor` reports a wrong clock, a certificate for another name and a blocked outbound connection', async () => {
  const late = await serve((_request, response) => {
    response.setHeader('x-next', 'date')
    response.setHeader('date', new Date(Date.now() - 60_000).toUTCString()).end('x')
  })
  const clock = await lookAt('service', { outsideUrl: `http://127.0.0.1:${late}/` })
  expect(of(clock, `clock, against 127.0.0.1:${late}`)).toMatchObject({
    verdict: 'broken',
    found: expect.stringMatching(/^\d\d s ahead of it$/),
    fix: 'timedatectl set-ntp true',
  })
  const certificate = newCertificate('elsewhere.example')
  const port = await serveTls(certificate, (_request, response) => response.end('x'))
  const { http } = till.service.config
  const baseUrl = `https://localhost:${port}`
  const web = await lookAt('service', { http: { ...http, baseUrl } }, { ca: certificate.ca })
  expect(of(web, 'certificate of BASE_URL')).toMatchObject({
    verdict: 'broken',
    found: 'it is not for localhost, but for "elsewhere.example"',
    fix: expect.stringContaining('-d localhost'),
  })
  expect(of(web, 'answer at BASE_URL').verdict).toBe('broken')
  const shut = await lookAt('service', { allowPrivateNetworks: false, production: true })
  expect(of(shut, 'way to the inside').verdict).toBe('ok')
  expect(of(shut, 'way to the outside').found).toContain('its address is not public')
})

test('the chain section of `bun run doctor` checks the token contract, the fees, the receipt key and the gas wallets', async () => {
  const findings = await lookAt('chain')
  expect(of(findings, 'USDC').verdict).toBe('ok')
  expect(of(findings, 'old state').verdict).toBe('ok')
  expect(of(findings, 'fees').verdict).toBe('ok')
  expect(of(findings, 'receipt key').verdict).toBe('ok')
  const wallet = findings.find(({ check }) => check.startsWith('gas wallet'))!
  expect(wallet.found).toMatch(/^[\d.]+ ether, enough for (?:\d+|more than a million) payments$/)
  const poor = `0x${'31'.repeat(32)}` as const
  const { chain, receiptSeeds } = till.service.config
  const broken = await lookAt('chain', {
    chain: { ...chain, rpcUrls: [till.rpcUrl], settlementKeys: [poor] },
    receiptSeeds: [{ id: 'new', seed: new Uint8Array(32).fill(3) }],
  })
  expect(broken.find(({ check }) => check.startsWith('gas wallet'))).toMatchObject({
    verdict: 'broken',
    found: '0 ether, enough for 0 payments',
    fix: expect.stringMatching(/^send ether to 0x[0-9a-fA-F]{40}/),
  })
  expect(receiptSeeds).toBeUndefined()
  expect(of(broken, 'receipt key').verdict).toBe('broken')
  // In production, a missing key is reported among the findings about the settings, so the chain section does not
  // report it again.
  expect(of(await lookAt('chain', { production: true }), 'receipt key')).toBeUndefined()
  const production = { production: true, receiptSeeds: [{ id: 'new', seed: new Uint8Array(32) }] }
  expect(of(await lookAt('chain', production), 'receipt key').verdict).toBe('broken')
})

test('`bun run doctor` reports an RPC node that is unreachable, busy or on another chain, and hides the node’s API key', async () => {
  const { chain } = till.service.config
  const at = (rpcUrl: string) => lookAt('chain', { chain: { ...chain, rpcUrls: [rpcUrl] } })
  const away = await at('http://127.0.0.1:1/v2/rpc-secret-key')
  expect(of(away, 'RPC')).toMatchObject({ verdict: 'broken', found: 'no answer: not reachable' })
  expect(JSON.stringify(away)).not.toContain('rpc-secret-key')
  const other = await serve((_request, response) =>
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 0, result: '0x1' })),
  )
  expect(of(await at(`http://127.0.0.1:${other}/`), 'chain id')).toMatchObject({
    verdict: 'broken',
    found: '1 is neither base nor base-sepolia',
  })
  const plain = await serve((_request, response) => response.writeHead(429).end('slow down'))
  expect(of(await at(`http://127.0.0.1:${plain}/`), 'RPC').found).toBe('no answer: HTTP 429')
})

test('`bun run doctor` writes, reads and deletes a test object in the object store, and reports a refusal', async () => {
  await using bucket = await startBucket()
  const blobStore = parseConfig(bucket.env).blobStore
  const right = await lookAt('mail', { blobStore })
  expect(of(right, 'BLOB_STORE').verdict).toBe('ok')
  expect(bucket.names()).toEqual([])
  const wrong = await lookAt('mail', { blobStore: { ...blobStore!, bucket: 'missing-bucket' } })
  expect(of(wrong, 'BLOB_STORE')).toMatchObject({
    verdict: 'broken',
    found: expect.stringMatching(/^an object could not be written: /),
  })
  const answers = [
    [404, '<Code>NoSuchKey</Code>'],
    [200, 'other bytes'],
  ] as const
  for (const [code, body] of answers) {
    const port = await serve((request, response) =>
      response.writeHead(request.method === 'GET' ? code : 200).end(body),
    )
    const endpoint = `http://127.0.0.1:${port}`
    const forgetful = await lookAt('mail', { blobStore: { ...blobStore!, endpoint } })
    expect(of(forgetful, 'BLOB_STORE')).toMatchObject({
      verdict: 'broken',
      found: 'an object could not be read: other bytes came back',
    })
  }
})
