import { afterAll, beforeAll, expect, test } from 'bun:test'
import { callTool, connectMcp, failTool, textOf } from '../../../support/mcp.ts'
import { answering, closeServers } from '../../../support/process/localServer.ts'
import { newCertificate, serveTls } from '../../../support/process/tlsServer.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import { vaultPath } from '../../../support/vault/vault.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

const LOGIN = {
  type: 'LOGIN',
  data: { password: 'correct horse', totp: 'JBSWY3DPEHPK3PXP' },
  metadata: { username: 'ada' },
}

test('the vault tools store, list, read and delete secrets, and compute one-time codes, with the same results as REST', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  const name = 'git/hub ü'
  const stored = await callTool(mcp, 'vault.store', { name, ...LOGIN })
  expect(stored).toMatchObject({ name, version: 1 })
  expect(JSON.stringify(stored)).not.toContain('correct horse')

  const list = await mcp.callTool({ name: 'vault.list', arguments: {} })
  expect(list.structuredContent).toEqual((await agent.get('/v0/vault')).body)
  expect(JSON.stringify(list)).not.toContain('correct horse')
  expect(textOf(list)).toContain('"git/hub ü" (LOGIN)')

  const open = await callTool(mcp, 'vault.get', { name })
  const { lastUsedAt, ...rest } = (await agent.get(vaultPath(name))).body
  expect(open).toMatchObject({ ...rest, data: { password: 'correct horse' }, hasTOTP: true })
  expect(JSON.stringify(open)).not.toContain('JBSWY3DPEHPK3PXP')
  const { code, remaining } = await callTool(mcp, 'vault.totp', { name })
  expect([/^\d{6}$/.test(code), remaining > 0 && remaining <= 30]).toEqual([true, true])

  expect(await callTool(mcp, 'vault.delete', { name })).toEqual({ name, deleted: true })
  expect((await agent.get(vaultPath(name))).status).toBe(404)
})

test('the tool vault.store accepts the arguments reveal and allowedHosts', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  const bounds = { reveal: 'owner', allowedHosts: ['api.example.com'] }
  expect(await callTool(mcp, 'vault.store', { name: 'held', ...LOGIN, ...bounds })).toMatchObject({
    name: 'held',
  })
  const { status, body } = await agent.get(vaultPath('held'))
  expect([status, body.error]).toEqual([403, 'forbidden'])
  const [listed] = (await agent.get('/v0/vault')).body.credentials
  expect(listed).toMatchObject(bounds)
})

test('the list tool of the vault returns credentials in pages, or only those that expire within a given time', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  for (const name of ['a', 'b', 'c']) await callTool(mcp, 'vault.store', { name, ...LOGIN })
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  await callTool(mcp, 'vault.store', { name: 'd', ...LOGIN, expiresAt: soon })
  const names = (page: any) => page.credentials.map(({ name }: any) => name)
  const first = await callTool(mcp, 'vault.list', { limit: 3 })
  expect(names(first)).toEqual(['d', 'c', 'b'])
  const second = await callTool(mcp, 'vault.list', { limit: 3, pageToken: first.nextPageToken })
  expect(names(second)).toEqual(['a'])
  expect(names(await callTool(mcp, 'vault.list', { expiringWithin: '1d' }))).toEqual(['d'])
})

test('the audit log records every call that reads or uses a credential, with the request id of the call', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  await callTool(mcp, 'vault.store', { name: 'x', ...LOGIN })
  await callTool(mcp, 'vault.get', { name: 'x' })
  await failTool(mcp, 'vault.get', { name: 'y' })
  const { logs } = (await agent.get('/v0/logs')).body
  expect(logs.map(({ action, subject, outcome }: any) => [action, subject, outcome])).toEqual([
    ['vault.get', 'y', 'not_found'],
    ['vault.get', 'x', 'ok'],
    ['vault.put', 'x', 'ok'],
  ])
  for (const { actor, requestId } of logs) {
    expect(agent.key).toStartWith(actor)
    expect(requestId).toMatch(/^req_/)
  }
})

test('the errors of vault tools say how to fix a call and never contain a secret', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  await callTool(mcp, 'vault.store', { name: 'old', ...LOGIN, expiresAt: '2020-01-01' })
  const cases: [string, object, string][] = [
    ['vault.get', { name: 'no' }, 'not_found: Credential not found. Copy name exactly from vault'],
    ['vault.get', { name: '' }, 'bad_request: name must be 1 to 128 characters'],
    ['vault.get', { name: 'a\nb' }, 'bad_request: name must be 1 to 128 characters'],
    [
      'vault.get',
      { name: 'old' },
      'expired: Credential "old" has expired (2020-01-01T00:00:00.000Z)',
    ],
    ['vault.store', { name: 'a', type: 'PIN', data: { a: 1 } }, 'bad_request: type must be one of'],
    ['vault.store', { name: 'a', type: 'LOGIN', data: {} }, 'bad_request: data must'],
    [
      'vault.store',
      { name: 'a', ...LOGIN, data: { totp: 'hunter2!' } },
      'bad_request: data.totp must',
    ],
    [
      'vault.store',
      { name: 'a', ...LOGIN, expiresAt: 'x' },
      'bad_request: expiresAt must be an ISO',
    ],
    [
      'vault.list',
      { expiringWithin: 'soon' },
      'bad_request: expiringWithin must be a whole number',
    ],
    ['vault.delete', { name: 'no' }, 'not_found: Credential not found. '],
  ]
  for (const [name, args, message] of cases) {
    const text = await failTool(mcp, name, args)
    expect([name, args, text]).toEqual([name, args, expect.stringContaining(message)])
    expect(text).not.toContain('hunter2')
  }
})

test('an API key with only the scope vault:read sees only the read tools of the vault, and reads no secret of another project', async () => {
  const reader = await service.newAgent({ scopes: ['vault:read'] })
  await using mcp = await connectMcp(service.url, reader.key, '/mcp?names=underscore')
  const { tools } = await mcp.listTools()
  expect(tools.map(({ name }) => name)).toEqual(['whoami', 'vault_list', 'vault_get', 'vault_totp'])
  expect(await failTool(mcp, 'vault_delete', { name: 'a' })).toStartWith(
    'forbidden: Missing required scope: vault:write. ',
  )
  const stranger = await service.newAgent()
  await stranger.put(vaultPath('theirs'), LOGIN)
  expect(await failTool(mcp, 'vault_get', { name: 'theirs' })).toStartWith('not_found: ')
})

test('MCP tools can use a secret and sign with a secret, but never return the secret', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  const uri = 'https://bank.example'
  await callTool(mcp, 'vault.store', { name: 'held', ...LOGIN, metadata: { uri } })
  await callTool(mcp, 'vault.store', {
    ...{ name: 'mac', type: 'API_KEY', data: { secret: 'a key of sixteen bytes' } },
  })
  for (const name of ['held', 'mac']) await agent.patch(vaultPath(name), { reveal: 'owner' })
  expect(await failTool(mcp, 'vault.get', { name: 'held' })).toContain('use it with vault.use')
  expect(
    await failTool(mcp, 'vault.use', { name: 'held', request: { url: 'https://evil.test/' } }),
  ).toContain('must not be used at evil.test')
  const note = { url: `${uri}/notes`, body: { text: '{{password}}' } }
  expect(await failTool(mcp, 'vault.use', { name: 'held', request: note })).toMatch(
    /at json:\/text: see its placement.*or ask the owner/s,
  )
  const input = { algorithm: 'hmac-sha256', text: 'x' }
  const signed = await callTool(mcp, 'vault.sign', { name: 'mac', ...input })
  expect(signed).toEqual((await agent.post(vaultPath('mac', '/sign'), input)).body)
  // No worker runs in this test, so the request that sends the secret to a server stays queued.
  const first = await agent.post(vaultPath('held', '/use?timeout=0'), {
    request: { url: `${uri}/`, body: { password: '{{password}}' } },
  })
  const waiting = await agent.get(vaultPath('held', `/uses/${first.body.useId}?timeout=0`))
  expect([waiting.status, waiting.body.state]).toEqual([202, 'pending'])
  expect(await failTool(mcp, 'vault.get_use', { name: 'mac', useId: first.body.useId })).toContain(
    'Use not found',
  )
})

test('the tool vault.use returns the response of the remote server without the secret', async () => {
  const certificate = newCertificate('bank.example')
  const port = await serveTls(certificate, ({ headers }, response) => {
    response.end(`you said ${headers.authorization}`)
  })
  await using working = await startTestService({
    ...{ smtp: false, pools: ['vault'], env: { ALLOW_PRIVATE_NETWORKS: 'true' } },
    ...{ ca: certificate.ca, resolve: answering('127.0.0.1') },
  })
  const agent = await working.newAgent()
  await using mcp = await connectMcp(working.url, agent.key)
  const allowed = {
    metadata: { uri: `https://bank.example:${port}` },
    placement: ['header:authorization'],
  }
  await callTool(mcp, 'vault.store', { name: 'n', ...LOGIN, ...allowed })
  const answer = await mcp.callTool({
    name: 'vault.use',
    arguments: {
      ...{ name: 'n', idempotencyKey: 'one' },
      request: {
        url: `https://bank.example:${port}/`,
        headers: { Authorization: '{{password}}' },
      },
    },
  })
  const closed = { metadata: { uri: 'https://bank.example:1' } }
  await callTool(mcp, 'vault.store', { name: 'closed', ...LOGIN, ...closed })
  const failed = await mcp.callTool({
    name: 'vault.use',
    arguments: { name: 'closed', request: { url: 'https://bank.example:1/' } },
  })
  expect(textOf(failed)).toMatch(/^failed: /)
  const [before, inside, after] = textOf(answer).split(/^.*UNTRUSTED SERVER.*$/m)
  expect([before, inside!.includes('you said [masked]'), after]).toEqual(['', true, ''])
  expect(JSON.stringify(answer)).not.toContain('correct horse')
  const { useId } = answer.structuredContent as { useId: string }
  expect(await callTool(mcp, 'vault.get_use', { name: 'n', useId })).toEqual(
    answer.structuredContent,
  )
  closeServers()
})
