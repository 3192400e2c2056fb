import { expect } from 'bun:test'
import type { Agent, TestService } from '../service.ts'
import { waitFor } from '../waitFor.ts'

/** Returns the API path of the approval requests of a project. */
export const heldPath = (agent: Agent, approvalId?: string): string =>
  `/v0/platform/projects/${agent.project.id}/held${approvalId === undefined ? '' : `/${approvalId}`}`

/** Makes an agent whose outgoing mail waits for the approval of the owner. */
export async function heldAgent(
  service: TestService,
  change: object = { sendPolicy: 'approve' },
): Promise<Agent> {
  const agent = await service.newAgent()
  const path = `/v0/platform/projects/${agent.project.id}`
  const { status, body } = await service.platform.patch(path, change)
  expect([status, body.message]).toEqual([200, undefined])
  return agent
}

/** Reads the whole approval request of a held mail. */
export const requestOf = (service: TestService, agent: Agent, messageId: string): Promise<any> =>
  waitFor(`the request of ${messageId}`, async () => {
    for (const state of ['waiting', 'approved', 'rejected', 'withdrawn', 'expired']) {
      const { body } = await service.platform.get(`${heldPath(agent)}?state=${state}&limit=100`)
      const found = body.held.find((one: any) => one.message?.messageId === messageId)
      if (found === undefined) continue
      return (await service.platform.get(heldPath(agent, found.approvalId))).body
    }
    return null
  })
