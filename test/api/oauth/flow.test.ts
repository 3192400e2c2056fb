import { afterAll, beforeAll, expect, test } from 'bun:test'
import { changingBefore } from '../../support/database/beforeStatement.ts'
import {
  allow,
  answered,
  authorizationOf,
  authorize,
  callMcp,
  codeFor,
  connect,
  REDIRECT,
  register,
  requestConsent,
  revoke,
  startOAuthService,
  token,
  toolCall,
} from '../../support/oauth.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startOAuthService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const get = async (path: string): Promise<{ status: number; headers: Headers; body: any }> => {
  const response = await fetch(service.url + path)
  return { status: response.status, headers: response.headers, body: await response.json() }
}
/** Returns the newest entry of a project's audit log, and expects that it records the end of an app's access. */
async function endOf(own: Agent): Promise<any> {
  const { body } = await own.get('/v0/logs')
  expect(body.logs[0]).toMatchObject({ action: 'oauth_grant.revoke' })
  return body.logs[0]
}
const toolNames = (answer: { body: any }) => answer.body.result.tools.map(({ name }: any) => name)

test('the response to an MCP call without a key names the URL of the OAuth metadata, and the call does not count as an attempt with a wrong API key', async () => {
  await using limited = await startOAuthService({ env: { RATE_LIMIT_AUTH: '2' } })
  for (let n = 0; n < 5; n++) {
    const { status, headers } = await callMcp(limited.url, null)
    expect(status).toBe(401)
    expect(headers.get('www-authenticate')).toBe(
      `Bearer realm="purser", resource_metadata="${limited.url}/.well-known/oauth-protected-resource/mcp", scope="mail:read mail:send mail:manage mail:codes vault:use"`,
    )
  }
})

test('all OAuth metadata documents contain exactly the same issuer', async () => {
  for (const path of ['', '/mcp']) {
    const { body, headers } = await get(`/.well-known/oauth-protected-resource${path}`)
    expect(body).toMatchObject({
      resource: `${service.url}/mcp`,
      authorization_servers: [service.url],
      scopes_supported: ['mail:read', 'mail:send'],
    })
    expect(headers.get('access-control-allow-origin')).toBe('*')
  }
  const { body } = await get('/.well-known/oauth-authorization-server')
  expect(body).toMatchObject({
    issuer: service.url,
    token_endpoint: `${service.url}/oauth/token`,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
  })
  expect(body.scopes_supported).not.toContain('openid')
  expect((await get('/.well-known/openid-configuration')).status).toBe(404)
  const preflight = await fetch(`${service.url}/oauth/token`, { method: 'OPTIONS' })
  expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([
    204,
    'POST',
  ])
})

test('an app that the owner allows gets an authorization code and then tokens, and has access only to the chosen project', async () => {
  const { body: client } = await register(service.url, {
    redirect_uris: [REDIRECT],
    client_name: 'Notes',
  })
  const asked = authorizationOf(service.url, client.client_id, {
    scope: 'mail:read mail:send mail:codes vault:read offline_access',
  })
  const { id, owner } = await requestConsent(service, asked)
  expect((await owner.get(`/oauth/requests/${id}`)).body).toEqual({
    clientName: 'Notes',
    clientHost: null,
    redirectHost: 'app.example',
    scopes: [
      { scope: 'mail:read', words: 'read your mail', isTicked: true },
      { scope: 'mail:send', words: 'send mail, within the rules of the inbox', isTicked: true },
      {
        scope: 'mail:codes',
        words: 'read one-time codes from your mail, and its links for sign-in and password reset',
        isTicked: false,
      },
    ],
  })
  const { body: decided } = await allow(owner, id, agent, { scopes: ['mail:read'] })
  const { code, state, iss } = answered(decided.redirectTo)
  expect([state, iss]).toEqual(['a state', service.url])
  const { status, headers, body } = await token(service.url, {
    grant_type: 'authorization_code',
    code: code!,
    client_id: client.client_id,
    redirect_uri: REDIRECT,
    code_verifier: asked.verifier,
  })
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 3600, scope: 'mail:read' })
  const listed = await callMcp(service.url, body.access_token)
  expect(toolNames(listed)).toContain('mail_list_messages')
  expect(toolNames(listed)).not.toContain('mail_send')
  const whoami = await callMcp(service.url, body.access_token, toolCall('whoami'))
  expect(whoami.body.result.structuredContent).toMatchObject({
    email: agent.address,
    scopes: ['mail:read'],
  })
})

test('the consent page names each kind of access of a scope: signatures by a secret, and links in mails', async () => {
  const own = await service.newAgent()
  const data = { hmacKey: 'k'.repeat(32) }
  await own.put('/v0/vault/mac', { type: 'CUSTOM', data, allowedHosts: [] })
  const { body: client } = await register(service.url)
  const scopes = ['vault:use', 'mail:codes', 'mail:read']
  const asked = authorizationOf(service.url, client.client_id, { scope: scopes.join(' ') })
  const { id, owner } = await requestConsent(service, asked)
  const shown = (await owner.get(`/oauth/requests/${id}`)).body.scopes
  const wordsOf = (wanted: string) => shown.find(({ scope }: any) => scope === wanted).words
  expect(wordsOf('mail:codes')).toContain('links')
  const { access } = await connect(service, own, { scopes })
  const args = { name: 'mac', algorithm: 'hmac-sha256', text: 'POST /orders' }
  const { body } = await callMcp(service.url, access, toolCall('vault_sign', args))
  // The signature needs no allowed host, so the words must not promise that secrets are used only at their hosts.
  expect(body.result.structuredContent.signatureHex).toMatch(/^[0-9a-f]{64}$/)
  expect(wordsOf('vault:use')).toContain('sign')
})

test('if the owner denies consent, the app gets the error access_denied and no authorization code', async () => {
  const { body: client } = await register(service.url)
  const { id, owner } = await requestConsent(
    service,
    authorizationOf(service.url, client.client_id),
  )
  const { body } = await owner.post(`/oauth/requests/${id}`, { decision: 'deny' })
  expect(answered(body.redirectTo)).toMatchObject({
    error: 'access_denied',
    state: 'a state',
    iss: service.url,
  })
})

test('a token refresh returns new tokens, and if the old refresh token is used later, the app loses all access', async () => {
  const { refresh, clientId, access } = await connect(service, agent)
  const renew = (refresh_token: string, more = {}) =>
    token(service.url, { grant_type: 'refresh_token', refresh_token, client_id: clientId, ...more })
  const [one, other] = await Promise.all([renew(refresh), renew(refresh)])
  expect([one.status, other.status]).toEqual([200, 200])
  for (const { body } of [one, other]) {
    expect((await callMcp(service.url, body.access_token)).status).toBe(200)
  }
  expect((await callMcp(service.url, access)).status).toBe(200)
  await service.database.pool.query(
    `update oauth_tokens set rotated_at = rotated_at - interval '61 seconds' where rotated_at is not null`,
  )
  expect((await renew(refresh)).body.error).toBe('invalid_grant')
  for (const { body } of [one, other]) {
    expect((await callMcp(service.url, body.access_token)).status).toBe(401)
    expect((await renew(body.refresh_token)).body.error).toBe('invalid_grant')
  }
})

test('a token refresh may request fewer scopes for the access token, but cannot add scopes beyond the owner’s consent', async () => {
  const { refresh, clientId } = await connect(service, agent)
  const renew = (refresh_token: string, scope: string) =>
    token(service.url, { grant_type: 'refresh_token', refresh_token, client_id: clientId, scope })
  const { body: narrow } = await renew(refresh, 'mail:read')
  expect(narrow.scope).toBe('mail:read')
  expect((await callMcp(service.url, narrow.access_token, toolCall('mail_send'))).status).toBe(403)
  // At the next refresh of its token, the app may again request each scope that the owner granted (RFC 6749 §6).
  const { body: whole } = await renew(narrow.refresh_token, 'mail:read mail:send')
  expect(whole.scope).toBe('mail:read mail:send')
  expect((await renew(refresh, 'mail:read vault:read')).body.error).toBe('invalid_scope')
})

test('if a tool call lacks a scope, the service requests the owner’s consent to this scope, unless no consent can grant it', async () => {
  const { access } = await connect(service, agent, { scopes: ['mail:read'] })
  const { status, headers } = await callMcp(service.url, access, toolCall('mail_send'))
  expect(status).toBe(403)
  expect(headers.get('www-authenticate')).toBe(
    `Bearer realm="purser", error="insufficient_scope", scope="mail:read mail:send", resource_metadata="${service.url}/.well-known/oauth-protected-resource/mcp"`,
  )
  const read = await callMcp(service.url, access, toolCall('vault_get', { name: 'x' }))
  expect([read.status, read.body.result.isError]).toEqual([200, true])
  // A tool call with an API key that lacks a scope gets only an error. Unlike a call of an OAuth client, it does not
  // request the owner's consent.
  const reader = await service.newAgent({ scopes: ['mail:read'] })
  const byKey = await callMcp(service.url, reader.key, toolCall('mail.send'))
  expect([byKey.status, byKey.body.result.isError]).toEqual([200, true])
})

test('if the owner requires approval of mail at consent, every mail of the app waits for approval, whichever tool sends it', async () => {
  const own = await service.newAgent()
  const { access } = await connect(service, own, {
    holdsMail: true,
    scopes: ['mail:read', 'mail:send'],
  })
  const call = async (name: string, args: object) => {
    const { body } = await callMcp(service.url, access, toolCall(name, args))
    return body.result.structuredContent
  }
  const mail = { to: ['ada@example.com'], subject: 'Hi', text: 'Hi' }
  const sent = await call('mail_send', mail)
  expect(sent.deliveryStatus).toBe('held')
  const reply = await call('mail_reply', { messageId: sent.messageId, text: 'More' })
  expect(reply.deliveryStatus).toBe('held')
  const { draftId } = await call('mail_create_draft', mail)
  expect((await call('mail_send_draft', { draftId })).deliveryStatus).toBe('held')
  // The API key of the project sends the same mail at once, because the project's policy needs no approval.
  expect((await own.post('/v0/messages/send', mail)).body.deliveryStatus).toBeUndefined()
})

test('the revocation of a refresh token ends the app’s access, and the revocation of an unknown token causes no error', async () => {
  const own = await service.newAgent()
  const { access, refresh, clientId } = await connect(service, own)
  expect((await revoke(service.url, { token: 'lort-x', client_id: clientId })).status).toBe(200)
  const { clientId: stranger } = await connect(service, agent)
  expect((await revoke(service.url, { token: refresh, client_id: stranger })).status).toBe(200)
  expect((await callMcp(service.url, access)).status).toBe(200)
  const { status, headers } = await revoke(service.url, { token: refresh, client_id: clientId })
  expect(status).toBe(200)
  expect((await callMcp(service.url, access)).status).toBe(401)
  // The owner must be able to see who ended the access of an app, so the audit log names this person.
  expect(await endOf(own)).toMatchObject({
    metadata: {
      requestId: headers.get('x-request-id'),
      detail: expect.stringMatching(/: the app gave its access back$/),
    },
  })
})

test('if an app loses its access because it used a code or a refresh token twice, the audit log states this reason', async () => {
  const own = await service.newAgent()
  const again = await connect(service, own)
  expect((await token(service.url, again.exchange)).status).toBe(400)
  expect((await endOf(own)).metadata.detail).toEndWith(': a code was used again')

  const { refresh, clientId } = await connect(service, own)
  const renew = () =>
    token(service.url, { grant_type: 'refresh_token', refresh_token: refresh, client_id: clientId })
  expect((await renew()).status).toBe(200)
  await service.database.pool.query(
    `update oauth_tokens set rotated_at = rotated_at - interval '1 hour' where rotated_at is not null`,
  )
  expect((await renew()).status).toBe(400)
  expect((await endOf(own)).metadata.detail).toEndWith(': a refresh token was used again')
})

test('an owner sees the connected apps with the time of their last use, and disconnects an app at once', async () => {
  const own = await service.newAgent()
  const { access, owner } = await connect(service, own)
  await callMcp(service.url, access)
  const { body } = await owner.get('/oauth/grants')
  const grant = body.grants.find(({ projectId }: any) => projectId === own.project.id)
  expect(grant).toMatchObject({
    inboxAddress: own.address,
    redirectHost: 'app.example',
    clientHost: null,
    scopes: ['mail:read', 'mail:send'],
    usedAt: expect.stringMatching(/Z$/),
  })
  expect((await owner.delete(`/oauth/grants/${grant.id}`)).status).toBe(204)
  const { status, headers } = await callMcp(service.url, access)
  expect(status).toBe(401)
  expect(headers.get('www-authenticate')).toContain('error="invalid_token"')
  expect((await owner.delete(`/oauth/grants/${grant.id}`)).status).toBe(404)
  const { body: logs } = await own.get('/v0/logs')
  expect(logs.logs.map(({ action }: any) => action)).toEqual([
    'oauth_grant.revoke',
    'oauth_grant.create',
  ])
})

test('OAuth tokens end at once when their project or app is deleted, or when they expire', async () => {
  const { database, platform } = service
  const own = await service.newAgent()
  const gone = await connect(service, own)
  await platform.delete(`/v0/platform/projects/${own.project.id}`)
  expect((await callMcp(service.url, gone.access)).status).toBe(401)

  const deleted = await connect(service, agent)
  await database.pool.query('delete from oauth_clients where id = $1', [deleted.clientId])
  expect((await callMcp(service.url, deleted.access)).status).toBe(401)
  const renewed = await token(service.url, {
    grant_type: 'refresh_token',
    refresh_token: deleted.refresh,
    client_id: deleted.clientId,
  })
  expect([renewed.status, renewed.body.error]).toEqual([401, 'invalid_client'])

  const late = await connect(service, agent)
  await database.pool.query(
    `update oauth_grants set expires_at = clock_timestamp() - interval '1 second' where client_id = $1`,
    [late.clientId],
  )
  expect((await callMcp(service.url, late.access)).status).toBe(401)
})

test('if OAuth is enabled, an API key still works but not as a refresh token, and an access token works only at /mcp', async () => {
  expect((await callMcp(service.url, agent.key)).status).toBe(200)
  expect(toolNames(await callMcp(service.url, agent.key))).toContain('mail.list_messages')
  const { access, clientId } = await connect(service, agent)
  const v0 = await fetch(`${service.url}/v0/messages`, {
    headers: { authorization: `Bearer ${access}` },
  })
  expect(v0.status).toBe(401)
  const { body } = await token(service.url, {
    grant_type: 'refresh_token',
    refresh_token: agent.key,
    client_id: clientId,
  })
  expect(body.error).toBe('invalid_grant')
  const inQuery = await callMcp(service.url, null, undefined, `/mcp?access_token=${access}`)
  expect([400, 401]).toContain(inQuery.status)
})

test('the service disables OAuth if its public URL has no TLS', async () => {
  await using plain = await startTestService({
    smtp: false,
    workers: false,
    env: { BASE_URL: 'http://purser.example.com' },
  })
  const found = await fetch(`${plain.url}/.well-known/oauth-authorization-server`)
  expect(found.status).toBe(404)
  const { headers } = await callMcp(plain.url, null)
  expect(headers.get('www-authenticate')).toBe('Bearer realm="purser"')
})

test('an authorization request may omit its optional parameters, and without a scope gets the smallest set of scopes', async () => {
  const { body: client } = await register(service.url)
  const asked = authorizationOf(service.url, client.client_id, {
    scope: null,
    state: null,
    resource: null,
    redirect_uri: null,
  })
  const { id, owner } = await requestConsent(service, asked)
  const { body } = await owner.get(`/oauth/requests/${id}`)
  expect(body.scopes.map(({ scope }: any) => scope)).toEqual(['mail:read', 'mail:send'])
  const { body: decided } = await allow(owner, id, agent)
  expect(Object.keys(answered(decided.redirectTo)).toSorted()).toEqual(['code', 'iss'])
})

test('an authorization code works only once, and its second use ends the access that its first use gave', async () => {
  const { exchange } = await codeFor(service, agent)
  const answers = await Promise.all([1, 2, 3].map(() => token(service.url, exchange)))
  const won = answers.filter(({ status }) => status === 200)
  expect(won).toHaveLength(1)
  expect((await callMcp(service.url, won[0]!.body.access_token)).status).toBe(401)
  expect(
    (await authorize(service.url, authorizationOf(service.url, exchange.client_id))).status,
  ).toBe(303)
})

test('if an authorization request expires while the owner gives consent, the owner gets status 409, and the app gets no access', async () => {
  const { body } = await register(service.url)
  const asked = authorizationOf(service.url, body.client_id)
  const { id, owner } = await requestConsent(service, asked)
  const expire = () =>
    service.database.pool.query(
      `update oauth_requests set expires_at = clock_timestamp() - interval '1 s' where id = $1`,
      [id],
    )
  const answer = await changingBefore('update oauth_requests set decided_at', expire, () =>
    allow(owner, id, agent),
  )
  expect(answer.status).toBe(409)
})
