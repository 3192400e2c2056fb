/** Tests which MCP tool calls the service checks again when their results are ready. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { callMcp, toolCall } from '../../support/oauth.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

const call = (id: number, name: string, args = {}) => ({ ...toolCall(name, args), id })

/** Sends a JSON-RPC message or batch to /mcp. @returns the results of its calls */
async function post(key: string, message: object): Promise<any[]> {
  const { body } = await callMcp(service.url, key, message)
  return [body].flat().map(({ result }: any) => result)
}

test('if an API key loses a scope during a read over MCP, the read is refused as over REST, even if the same MCP batch also contains a change', async () => {
  const agent = await service.newAgent()
  const mail = { to: ['a@example.com'], subject: 's', text: 't' }
  const { messageId } = (await agent.post('/v0/messages/send', mail)).body
  await agent.put('/v0/vault/p', { type: 'LOGIN', data: { password: 'correct horse' } })
  const { pool } = service.database
  const locker = await pool.connect()
  try {
    await locker.query('begin')
    await locker.query('lock table credentials in access exclusive mode')
    const rest = agent.get('/v0/vault')
    const alone = post(agent.key, call(1, 'vault.list'))
    const change = call(2, 'mail.update_labels', { messageId, addLabels: ['seen'] })
    const batch = post(agent.key, [call(1, 'vault.list'), change, call(3, 'whoami')])
    await waitFor('three reads to wait for the table', async () => {
      const { rows } = await pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      )
      return rows.length >= 3
    })
    // The service checks a caller again only if a read of the caller takes over a second, so the test makes this read
    // longer.
    await Bun.sleep(1_200)
    const removed = await service.platform.patch(`/v0/platform/projects/${agent.project.id}`, {
      removeScopes: ['vault:read'],
    })
    expect(removed.status).toBe(200)
    await locker.query('commit')
    const refusal = {
      error: 'forbidden',
      message: 'Missing required scope: vault:read',
      status: 403,
    }
    expect(await rest).toMatchObject({ status: 403, body: refusal })
    const [late, changed, quick] = await batch
    for (const result of [(await alone)[0], late]) {
      expect(result).toMatchObject({ isError: true, _meta: { 'purser/error': refusal } })
      expect(JSON.stringify(result)).not.toContain('LOGIN')
    }
    expect(changed.structuredContent.labels).toContain('seen')
    expect(quick.isError).toBeUndefined()
  } finally {
    await locker.query('rollback')
    locker.release()
  }
})
