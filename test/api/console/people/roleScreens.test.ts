/**
 * Tests which parts of the console a person of each role sees. The file roles.test.ts tests that the service refuses
 * each request that a role does not allow.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { createSignInLink } from '../../../../sql/account/people/consoleSessions.ts'
import { hasBrowser, startBrowser } from '../../../support/console/browser.ts'
import { signInAs } from '../../../support/console/consoleSession.ts'
import { addDeliveries } from '../../../support/console/rows.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

let service: TestService
let browser: Browser
let agent: Agent
beforeAll(async () => {
  if (!hasBrowser) return
  ;[service, browser] = await Promise.all([
    startTestService({ smtp: false, workers: false }),
    startBrowser(),
  ])
  agent = await service.newAgent()
  await service.newAgent()
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
})

/** Opens the console for a person with the given role in one project. */
async function openAs(role: 'viewer' | 'owner' | 'operator'): Promise<Page> {
  const person = await signInAs(service, role, role === 'operator' ? [] : [agent.project.id])
  const token = await createSignInLink(service.database.pool, person.personId)
  const page = await (await browser.newContext()).newPage()
  await page.goto(`${service.url}/console/login#${token}`)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
  return page
}
const texts = (page: Page, list: 'Main' | 'Project') =>
  page.getByRole('navigation', { name: list }).getByRole('link').allTextContents()
const open = async (page: Page, path: string, heading: string) => {
  await page.goto(`${service.url}/console#/${path}`)
  await page.getByRole('heading', { level: 1, name: heading }).waitFor()
}

describe.skipIf(!hasBrowser)('the console shows a person only what the role allows', () => {
  test('a viewer sees the project that they may read, and no button that changes data', async () => {
    const page = await openAs('viewer')
    expect(await texts(page, 'Main')).toEqual(['Projects', 'Your sign-in'])
    await page.getByRole('link', { name: agent.project.name }).waitFor()
    expect(await page.getByRole('row').count()).toBe(2)
    expect(await page.getByRole('button', { name: 'New project' }).count()).toBe(0)
    await addDeliveries(service, agent, { count: 1 })
    const project = `projects/${agent.project.id}`
    await open(page, `${project}/inbox`, agent.project.name)
    expect(await texts(page, 'Project')).not.toContain('Vault')
    await open(page, `${project}/webhooks`, agent.project.name)
    await page.getByRole('link', { name: 'message.received' }).waitFor()
    expect(await page.getByRole('checkbox').count()).toBe(0)
    for (const [tab, acts] of [
      ['inbox', ['Write']],
      ['endpoints', ['Register endpoint']],
      ['webhooks', ['Replay failed…']],
      ['settings', ['Rename', 'Rotate key', 'Change scopes', 'Delete project', 'Add rule']],
    ] as const) {
      await open(page, `${project}/${tab}`, agent.project.name)
      for (const name of acts) {
        expect([name, await page.getByRole('button', { name, exact: true }).count()]).toEqual([
          name,
          0,
        ])
      }
    }
    await page.context().close()
  })

  test('in the console, an owner makes decisions for their own projects, and an operator makes decisions for all projects', async () => {
    const owner = await openAs('owner')
    expect(await texts(owner, 'Main')).toEqual(['Projects', 'Connected apps', 'Your sign-in'])
    await open(owner, `projects/${agent.project.id}/settings`, agent.project.name)
    await owner.getByRole('button', { name: 'Rotate key', exact: true }).waitFor()
    const forOperators = ['Delete project', 'Change daily limits', 'Change storage']
    for (const name of forOperators) {
      expect([name, await owner.getByRole('button', { name, exact: true }).count()]).toEqual([
        name,
        0,
      ])
    }
    const operator = await openAs('operator')
    expect(await texts(operator, 'Main')).toContain('People')
    await open(operator, `projects/${agent.project.id}/settings`, agent.project.name)
    for (const name of forOperators) {
      await operator.getByRole('button', { name, exact: true }).waitFor()
    }
    await open(operator, 'people', 'People')
    await operator.getByRole('button', { name: 'Add person' }).click()
    const dialog = operator.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('Bo')
    await dialog.getByLabel('E-mail address').fill('bo@people.example')
    await dialog.getByRole('checkbox').first().check()
    await dialog.getByRole('button', { name: 'Add person' }).click()
    await operator.getByRole('cell', { name: 'bo@people.example' }).waitFor()
    await owner.context().close()
    await operator.context().close()
  })
})
