import { expect } from 'bun:test'
import type { Agent, TestService } from '../service.ts'
import { waitFor } from '../waitFor.ts'
import type { Sink } from './sink.ts'

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

/** Reads the whole approval request of a mail. */
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

/** Returns the notification mail about an approval request. */
export const noticeOf = (sink: Sink, approvalId: string) =>
  waitFor(`the notification about ${approvalId}`, () =>
    sink.mails.find(({ email }) => email.messageId?.startsWith(`<${approvalId}.`)),
  )

/** Returns the approval link in the notification mail about an approval request. */
export async function approvalLink(
  service: TestService,
  sink: Sink,
  approvalId: string,
): Promise<string> {
  const { email } = await noticeOf(sink, approvalId)
  return service.url + /\/approve\/[\w-]{43}/.exec(email.text!)![0]
}

/**
 * Reads all approval pages behind an approval link, from the first page to the last page, as a person does.
 * @returns the HTML of each page, and the seal (the value of the form field `seen`) of the last page.
 */
export async function readApprovalPages(link: string): Promise<{ pages: string[]; seen: string }> {
  const pages: string[] = []
  for (let path = ''; ; ) {
    const html = await (await fetch(link + path)).text()
    pages.push(html)
    const next = /href="(\?page=\d+&amp;seen=[\w-]+)"/.exec(html)?.[1]
    if (next === undefined) return { pages, seen: /name="seen" value="([\w-]+)"/.exec(html)![1]! }
    path = next.replace('&amp;', '&')
  }
}

/** Submits the form of an approval page. */
export const decideByLink = (link: string, fields: Record<string, string>): Promise<Response> =>
  fetch(link, { method: 'POST', body: new URLSearchParams(fields) })
