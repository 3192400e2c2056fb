/**
 * Tests console actions that apply to many items. The console shows the number of items before the action, and the
 * progress during the action. The audit log has an entry for each item.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../../support/console/browser.ts'
import { addDeliveries, cellsOf } from '../../../support/console/rows.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/whole.ts'

let service: TestService
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([
    startTestService({ smtp: false, workers: false }),
    startBrowser(),
  ])
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const inDialog = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
const entries = async (agent: Agent, action: string): Promise<[string, string][]> => {
  const { body } = await agent.get(`/v0/logs?action=${action}&limit=100`)
  return body.logs.map((entry: any) => [
    entry.subject,
    `${entry.actor.split(':')[0]} ${entry.outcome}`,
  ])
}
const write = (agent: Agent, subject: string) =>
  agent.post('/v0/messages/send', { to: ['a@b.example'], subject, text: 'x' })

describe.skipIf(!hasBrowser)(
  'an owner applies one console action to many list items at once',
  () => {
    test('an owner replays all webhook deliveries that failed since a given time, after the console has shown their number', async () => {
      const agent = await service.newAgent()
      await addDeliveries(service, agent, { count: 130, status: 'exhausted' })
      const { pool } = service.database
      await pool.query(
        `update webhook_deliveries set created_at = now() - interval '3 days' where project_id = $1 and url ~ 'event-[1-5]/'`,
        [agent.project.id],
      )
      await using console = await openConsole(browser, service)
      const { page, complaints } = console
      await console.open(`projects/${agent.project.id}/webhooks`)
      await page.getByText('130 deliveries: 100 % of 130 failed, 0 pending.').waitFor()
      await press(page, 'Replay failed…')
      await inDialog(page, 'Count them')
      await page.getByText('125 deliveries go out again').waitFor()
      expect((await agent.get('/v0/webhooks/deliveries/stats')).body.pending).toBe(0)
      await inDialog(page, 'Replay')
      await page.getByText('125 deliveries sent again').waitFor()
      expect((await agent.get('/v0/webhooks/deliveries/stats')).body).toMatchObject({
        pending: 125,
        failed: 5,
      })
      await page.getByText('130 deliveries: 100 % of 5 failed, 125 pending.').waitFor()
      const { body } = await agent.get('/v0/logs/stats?action=webhook.replay&outcome=ok')
      expect(body.total).toBe(125)
      expect(complaints).toEqual([])
    })

    test('an owner replays the chosen webhook deliveries, and sees how many replays were refused and why', async () => {
      const agent = await service.newAgent()
      const gone = await addDeliveries(service, agent, { count: 2, status: 'aborted' })
      await agent.delete(`/v0/webhooks/${gone}`)
      await addDeliveries(service, agent, { count: 2, status: 'aborted' })
      await using console = await openConsole(browser, service)
      const { page } = console
      await console.open(`projects/${agent.project.id}/webhooks?status=failed`)
      expect(await page.getByRole('group', { name: 'Chosen' }).isVisible()).toBe(false)
      await page.getByRole('checkbox').first().check()
      await page.getByText('1 delivery chosen').waitFor()
      await press(page, 'Choose all that match')
      await page.getByText('4 deliveries chosen').waitFor()
      await press(page, 'Replay chosen deliveries')
      await page.getByText('4 deliveries go out again').waitFor()
      await inDialog(page, 'Replay')
      const alert = page.getByRole('dialog').getByRole('alert')
      await alert
        .getByText('2 deliveries sent again; 2 refused: The webhook of this delivery is gone')
        .waitFor()
      expect((await entries(agent, 'webhook.replay')).map(([, how]) => how).toSorted()).toEqual([
        'console ok',
        'console ok',
        'console refused',
        'console refused',
      ])
    })

    test('if an action on many items fails for some of them, the owner can repeat the action for only the failed items', async () => {
      const agent = await service.newAgent()
      await addDeliveries(service, agent, { count: 4, status: 'aborted' })
      await using console = await openConsole(browser, service)
      const { page } = console
      let isBroken = false
      await page.route('**/replay', (route) => {
        if (isBroken) return route.continue()
        isBroken = true
        return route.abort()
      })
      await console.open(`projects/${agent.project.id}/webhooks?status=failed`)
      await page.getByRole('checkbox').first().check()
      await press(page, 'Choose all that match')
      await page.getByText('4 deliveries chosen').waitFor()
      await press(page, 'Replay chosen deliveries')
      await inDialog(page, 'Replay')
      await page
        .getByText('3 deliveries sent again; 1 refused: The service cannot be reached')
        .waitFor()
      await inDialog(page, 'Replay')
      await page.getByText('1 delivery sent again').waitFor()
      expect(await entries(agent, 'webhook.replay')).toHaveLength(4)
    })

    test('if the console fails to select all rows, the owner sees how many rows are selected', async () => {
      const agent = await service.newAgent()
      await addDeliveries(service, agent, { count: 130, status: 'aborted' })
      await using console = await openConsole(browser, service)
      const { page } = console
      await page.route('**/deliveries?*limit=100&pageToken=*', (route) => route.abort())
      await console.open(`projects/${agent.project.id}/webhooks`)
      await page.getByRole('checkbox').first().check()
      await press(page, 'Choose all that match')
      await page.getByText('The service cannot be reached').waitFor()
      await page.getByText('1 delivery chosen').waitFor()
    })

    test('an owner sets a label on all messages that match a filter, across all pages of the list', async () => {
      const agent = await service.newAgent()
      for (let n = 0; n < 103; n++) await write(agent, `tea ${n}`)
      await write(agent, 'rum')
      await using console = await openConsole(browser, service)
      const { page } = console
      await console.open(`projects/${agent.project.id}/inbox?q=tea`)
      await page.getByRole('checkbox').first().check()
      await press(page, 'Choose all that match')
      await page.getByText('103 messages chosen').waitFor()
      await press(page, 'Label chosen messages')
      await page.getByText('The change is made to 103 messages.').waitFor()
      await inDialog(page, 'Label')
      await page.getByText('Name at least one label').waitFor()
      await page.getByRole('dialog').getByLabel('Add').fill('cargo, late')
      await inDialog(page, 'Label')
      await page.getByText('103 messages labelled').waitFor()
      expect((await agent.get('/v0/messages?labels=cargo,late&limit=100')).body.count).toBe(100)
      expect((await agent.get('/v0/logs/stats?action=message.label')).body.total).toBe(103)
      const { body } = await agent.get('/v0/messages?q=rum')
      expect(body.messages[0].labels).not.toContain('cargo')
    })

    test('an owner deletes the chosen threads by keyboard only, after the console has shown the number of messages', async () => {
      const agent = await service.newAgent()
      for (const subject of ['kept', 'second', 'first']) await write(agent, subject)
      const { body } = await agent.get('/v0/threads')
      await using console = await openConsole(browser, service)
      const { page } = console
      await console.open(`projects/${agent.project.id}/inbox`)
      for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key)
      await page.getByText('2 threads chosen').waitFor()
      await page.getByRole('button', { name: 'Delete chosen threads' }).focus()
      await page.keyboard.press('Enter')
      await page.getByText('2 threads with 2 messages will be deleted for good').waitFor()
      await page.keyboard.press('Escape')
      expect((await agent.get('/v0/threads')).body.count).toBe(3)
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).focus()
      await page.keyboard.press('Enter')
      await page.getByText('2 threads deleted').waitFor()
      await waitFor('one thread', async () => {
        const shown = await cellsOf(page, 'Threads', 'Subject')
        return shown.length === 1 && shown[0]!.includes('kept')
      })
      const doomed = body.threads
        .filter(({ subject }: any) => subject !== 'kept')
        .map(({ threadId }: any) => [threadId, 'console ok'])
      expect((await entries(agent, 'thread.delete')).toSorted()).toEqual(doomed.toSorted())
    })

    test('an owner stops a running action on many items by closing the dialog of this action', async () => {
      const agent = await service.newAgent()
      await addDeliveries(service, agent, { count: 100, status: 'exhausted' })
      await using console = await openConsole(browser, service)
      const { page } = console
      let asked = 0
      let open = () => {}
      const held = new Promise<void>((resolve) => {
        open = resolve
      })
      await page.route('**/replay', async (route) => {
        asked++
        if (asked > 20) await held
        await route.continue()
      })
      await console.open(`projects/${agent.project.id}/webhooks?status=failed`)
      await page.getByRole('checkbox').first().check()
      await press(page, 'Choose all that match')
      await page.getByText('100 deliveries chosen').waitFor()
      await press(page, 'Replay chosen deliveries')
      await inDialog(page, 'Replay')
      await page.getByText('20 of 100').waitFor()
      expect(await page.getByRole('progressbar').getAttribute('value')).toBe('20')
      await page.keyboard.press('Escape')
      open()
      await page.getByText('24 deliveries sent again').waitFor()
      expect((await agent.get('/v0/webhooks/deliveries/stats')).body.pending).toBe(24)
    })
  },
)
