/** Tests that an owner reads a calendar invitation at the console and answers it with a button. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Browser } from 'playwright-core'
import { judge } from '../../../support/console/axe.ts'
import { hasBrowser, openConsole, startBrowser } from '../../../support/console/browser.ts'
import { calendarFile } from '../../../support/mail/calendar/invitations.ts'
import { messagePath, startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([startTestService(), startBrowser()])
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

describe.skipIf(!hasBrowser)('an owner gets a calendar invitation', () => {
  test('an owner sees the time of the event in an invitation, and accepts the event', async () => {
    const agent = await service.newAgent()
    const messageId = '<review@example.com>'
    await service.deliver({
      ...{ from: 'ada@example.com', to: agent.address, subject: 'Review', text: 'Come', messageId },
      icalEvent: { method: 'REQUEST', content: calendarFile({ attendees: [agent.address] }) },
    })
    const threadId = await waitFor('the invite', async () => {
      const { body } = await agent.get(messagePath(messageId))
      return body.invites === undefined ? null : body.threadId
    })
    await using console = await openConsole(browser, service, { bypassCSP: true })
    const { page, complaints } = console
    await console.open(`projects/${agent.project.id}/inbox/${threadId}`)
    await page.getByRole('button', { name: 'Invitation' }).click()
    const card = page.getByRole('group', { name: 'Cargo review' })
    await card.getByText('2030-03-04 09:00:00').waitFor()
    await card.getByText('ada@example.com', { exact: true }).waitFor()
    await page.addScriptTag({ content: axe.source })
    await judge(console, 'invitation')
    await card.getByRole('button', { name: 'Accept', exact: true }).click()
    await page.getByText('The answer is on its way.').waitFor()
    await waitFor('the event in the calendar', async () => {
      const { body } = await agent.get('/v0/calendar?from=2030-03-01&to=2030-04-01')
      return body.count === 1
    })
    expect(complaints).toEqual([])
  })
})
