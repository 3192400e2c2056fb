import { expect } from 'bun:test'
import { type Agent, type TestService, waitForMessages } from '../service.ts'
import { deliverRaw } from './smtpTalk.ts'

/**
 * Delivers a mail with the Message-ID `<id@example.com>` and the subject `id`. The parameter `more` contains additional
 * header lines.
 */
export const deliverNamed = (service: TestService, to: string, id: string, more = '') =>
  deliverRaw(
    service.smtp!.port,
    to,
    `From: ada@example.com\nMessage-ID: <${id}@example.com>\n${more}Subject: ${id}\n\nText of ${id}.\n`,
  )

/** Makes an agent whose inbox has one thread with the given messages. */
export async function newThread(service: TestService, ids: string[]): Promise<Agent> {
  const agent = await service.newAgent()
  for (const [n, id] of ids.entries()) {
    await deliverNamed(
      service,
      agent.address,
      id,
      n === 0 ? '' : `In-Reply-To: <${ids[0]}@example.com>\n`,
    )
    await waitForMessages(agent, n + 1)
  }
  return agent
}

/** Lists the threads of an inbox through the API. */
export const listThreads = async (agent: Agent): Promise<any[]> =>
  (await agent.get('/v0/threads')).body.threads

/** Expects status 403 for an API key without mail:manage, and 404 for the API key of another project. */
export async function expectOnlyManagers(service: TestService, path: string): Promise<void> {
  const reader = await service.newAgent({ scopes: ['mail:read', 'mail:send'] })
  const stranger = await service.newAgent()
  for (const [who, status] of [
    [reader, 403],
    [stranger, 404],
  ] as const) {
    expect((await who.delete(path)).status).toBe(status)
    expect((await who.patch(path, { addLabels: ['x'] })).status).toBe(status)
  }
}
