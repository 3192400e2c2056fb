/** Tests that a waiting call of an app gets a mail only while the access token of the call is valid. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hashSecret } from '../../../shared/secretHash.ts'
import {
  callMcp,
  connect,
  revoke,
  startOAuthService,
  token,
  toolCall,
} from '../../support/oauth.ts'
import type { Agent, TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startOAuthService({ smtp: true, workers: true })
})
afterAll(() => service[Symbol.asyncDispose]())

/** Returns the number of MCP calls that wait for mail. */
async function countWaiting(): Promise<number> {
  const metrics = await (await fetch(`${service.url}/metrics`)).text()
  return Number(/^purser_event_readers (\d+)$/m.exec(metrics)?.[1])
}

/**
 * Connects an app, and starts a call of the app that waits for mail. The app can later revoke its own tokens.
 */
async function startWaiting() {
  const agent = await service.newAgent()
  const app = await connect(service, agent)
  const call = callMcp(service.url, app.access, toolCall('mail_wait', { timeout: 60 }))
  await waitFor('the call to wait', async () => (await countWaiting()) === 1)
  return { agent, app, result: call.then(({ body }) => body.result) }
}

const deliver = (agent: Agent, subject: string) =>
  service.deliver({ from: 'a@example.com', to: agent.address, subject, text: 'Only for the app.' })

const UNAUTHORIZED = {
  error: 'unauthorized',
  message: 'The access token is unknown, revoked or over',
  status: 401,
}

test('a call that waits for mail ends with 401 when the app revokes its access token', async () => {
  const { app, result } = await startWaiting()
  await revoke(service.url, { token: app.access, client_id: app.clientId })
  expect((await result)._meta['purser/error']).toEqual(UNAUTHORIZED)
})

test('a call that waits for mail ends with 401 if mail comes after the access token has expired', async () => {
  const { agent, app, result } = await startWaiting()
  await service.database.pool.query(
    `update oauth_tokens set expires_at = clock_timestamp() - interval '1 second' where token_hash = $1`,
    [hashSecret(app.access)],
  )
  await deliver(agent, 'after the expiry')
  const { _meta, content, structuredContent } = await result
  expect(_meta['purser/error']).toEqual(UNAUTHORIZED)
  expect(JSON.stringify([content, structuredContent])).not.toContain('after the expiry')
})

test('a call that waits for mail gets the mail, even if the app refreshes its tokens during the wait', async () => {
  const { agent, app, result } = await startWaiting()
  const refreshed = await token(service.url, {
    grant_type: 'refresh_token',
    refresh_token: app.refresh,
    client_id: app.clientId,
  })
  expect(refreshed.status).toBe(200)
  await deliver(agent, 'after the refresh')
  expect((await result).structuredContent).toMatchObject({
    found: true,
    message: { subject: 'after the refresh' },
  })
})

test('if an app tries to revoke the access token of another app, no waiting call ends', async () => {
  const { agent, app, result } = await startWaiting()
  const other = await connect(service, agent)
  await revoke(service.url, { token: app.access, client_id: other.clientId })
  await deliver(agent, 'still waiting')
  expect((await result).structuredContent).toMatchObject({ found: true })
})
