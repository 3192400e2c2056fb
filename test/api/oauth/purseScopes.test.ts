/**
 * Tests that chat hosts can get the OAuth scopes of the purse (a project's wallet) only if the operator offers these
 * scopes.
 */
import { expect, test } from 'bun:test'
import {
  authorizationOf,
  authorize,
  backTo,
  callMcp,
  connect,
  register,
  startOAuthService,
} from '../../support/oauth.ts'

const metadata = async (url: string) =>
  (await (await fetch(`${url}/.well-known/oauth-authorization-server`)).json()) as {
    scopes_supported: string[]
  }
const toolNames = ({ body }: { body: any }): string[] =>
  body.result.tools.map(({ name }: { name: string }) => name)

test('an OAuth app gets no scope of the purse (the agent’s wallet) unless the operator offers it', async () => {
  await using service = await startOAuthService()
  expect((await metadata(service.url)).scopes_supported).not.toContain('purse:pay')
  const { body } = await register(service.url)
  const alone = authorizationOf(service.url, body.client_id, { scope: 'purse:pay' })
  expect(backTo(await authorize(service.url, alone))).toContain('error=invalid_scope')
  const { headers: challenged } = await callMcp(service.url, null)
  expect(challenged.get('www-authenticate')).not.toContain('purse:')
})

test('if the operator offers a purse scope to OAuth apps, the purse tools work until the operator withdraws the offer', async () => {
  await using offering = await startOAuthService({
    env: { OAUTH_PURSE_SCOPES: 'purse:read,purse:pay' },
  })
  expect((await metadata(offering.url)).scopes_supported).toContain('purse:pay')
  const agent = await offering.newAgent()
  const scopes = ['mail:read', 'purse:read', 'purse:pay']
  const { access } = await connect(offering, agent, { scopes })
  expect(toolNames(await callMcp(offering.url, access))).toContain('purse_pay')
  offering.config.oauthPurseScopes = ['purse:read']
  const left = toolNames(await callMcp(offering.url, access))
  expect([left.includes('purse_quote'), left.includes('purse_pay')]).toEqual([true, false])
})

test('the setting OAUTH_PURSE_SCOPES accepts only scopes that belong to the purse (wallet)', async () => {
  await expect(startOAuthService({ env: { OAUTH_PURSE_SCOPES: 'vault:read' } })).rejects.toThrow(
    'OAUTH_PURSE_SCOPES',
  )
})
