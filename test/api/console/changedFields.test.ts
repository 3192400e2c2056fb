/**
 * Tests in a browser that a form saves only the changed fields, because another person may have changed other fields
 * since the form opened.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import {
  type ConsolePage,
  hasBrowser,
  openConsole,
  startBrowser,
} from '../../support/console/browser.ts'
import { startPurseTill } from '../../support/purse/purseScene.ts'
import type { Agent } from '../../support/service.ts'
import type { TestTill } from '../../support/till/till.ts'
import '../../support/whole.ts'

let till: TestTill
let browser: Browser
let desk: ConsolePage
let page: Page
beforeAll(async () => {
  if (!hasBrowser) return
  ;[till, browser] = await Promise.all([startPurseTill(), startBrowser()])
  desk = await openConsole(browser, till.service)
  page = desk.page
})
afterAll(async () => {
  await browser?.close()
  await till?.[Symbol.asyncDispose]()
})

const pathOf = ({ project }: Agent) => `/v0/platform/projects/${project.id}`
const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
const save = async (name = 'Save') => {
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name, exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
}
const change = async (path: string, body: object) => {
  const { status } = await till.service.platform.patch(path, body)
  expect(status).toBe(200)
}
const read = async (path: string) => (await till.service.platform.get(path)).body as any

describe.skipIf(!hasBrowser)(
  'two people change different fields of the same console form at the same time',
  () => {
    const TERMS = { hosts: ['a.example'], maxPerPayment: '0.05', maxPerDay: '5' }
    const giveMandate = async (agent: Agent, name: string): Promise<string> => {
      const given = { ...TERMS, name }
      const { body } = await till.service.platform.post(`${pathOf(agent)}/mandates`, given)
      return (body as any).mandateId
    }

    test('if one person renames a mandate (spending limit) while another person lowers its amount, the lower amount stays', async () => {
      const agent = await till.service.newAgent()
      await till.service.platform.post(`${pathOf(agent)}/purse`, {})
      const path = `${pathOf(agent)}/mandates/${await giveMandate(agent, 'Weather')}`
      await desk.open(`projects/${agent.project.id}/purse`)
      await press('Change Weather')
      await change(path, { maxPerDay: '0.1' })
      await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Tides')
      await save()
      expect(await read(path)).toMatchObject({ name: 'Tides', maxPerDay: '0.1' })
    })

    test('if one person sets the low-balance limit of a purse (wallet) while another sets its highest balance, both values stay', async () => {
      const agent = await till.service.newAgent()
      const path = `${pathOf(agent)}/purse`
      await till.service.platform.post(path, {})
      await desk.open(`projects/${agent.project.id}/purse`)
      await press('Limits')
      await change(path, { max: '7' })
      await page.getByLabel('Low, in USDC').fill('2')
      await save()
      expect(await read(path)).toMatchObject({ lowUsdc: '2', maxUsdc: '7' })
    })

    test('if a person enables payments while another person changes the payTo address, payments go to the new address', async () => {
      const agent = await till.service.newAgent()
      const [old, present] = ['1d', '2e'].map((byte) => `0x${byte.repeat(20)}`)
      await change(pathOf(agent), { payTo: old })
      await desk.open(`projects/${agent.project.id}/settings`)
      await press('Change payments')
      await change(pathOf(agent), { payTo: present })
      await page.getByRole('checkbox', { name: 'Accept payments' }).check()
      await save()
      const { payTo, paymentsEnabled } = await read(pathOf(agent))
      expect([payTo.toLowerCase(), paymentsEnabled]).toEqual([present, true])
    })

    test('if two people change the scopes of a project at the same time, the scope that one person removed stays removed', async () => {
      const agent = await till.service.newAgent()
      await desk.open(`projects/${agent.project.id}/settings`)
      await press('Change scopes')
      await change(pathOf(agent), { removeScopes: ['mail:send'] })
      await page.getByRole('checkbox', { name: 'vault:write' }).uncheck()
      await save('Change scopes')
      const { scopes } = await read(pathOf(agent))
      expect([scopes.includes('mail:send'), scopes.includes('vault:write')]).toEqual([false, false])
    })

    test('if one person changes the expiry time of approval requests while another requires approval for mail, approval stays required', async () => {
      const agent = await till.service.newAgent()
      await desk.open(`projects/${agent.project.id}/settings`)
      await press('Change sending')
      await change(pathOf(agent), { sendPolicy: 'approve' })
      await page.getByLabel('Hours until a request expires').fill('5')
      await save()
      expect(await read(pathOf(agent))).toMatchObject({ sendPolicy: 'approve', approvalHours: 5 })
    })

    test('if one person adds a host to a secret while another withholds the secret from the agent, the secret stays withheld', async () => {
      const agent = await till.service.newAgent()
      await agent.put('/v0/vault/bank', { type: 'LOGIN', data: { password: 'correct horse' } })
      await desk.open(`projects/${agent.project.id}/vault`)
      await press('Protect')
      const { status } = await agent.patch('/v0/vault/bank', { reveal: 'owner' })
      expect(status).toBe(200)
      await page.getByLabel('Allowed hosts').fill('bank.example')
      await save()
      expect((await agent.get('/v0/vault/bank')).status).toBe(403)
    })

    test('if a person withholds a secret, an allowed path and a placement (where the secret may be used) with a comma stay one entry each', async () => {
      const agent = await till.service.newAgent()
      const bounds = { allowedPaths: ['/v1/charges/x,/admin'], placement: ['path:/a,body'] }
      const secret = { type: 'API_KEY', data: { key: 'correct horse' } }
      await agent.put('/v0/vault/shop', { ...secret, allowedHosts: ['shop.example'], ...bounds })
      await desk.open(`projects/${agent.project.id}/vault`)
      await press('Protect')
      await page.getByLabel('Read by').selectOption('owner')
      await save()
      const [{ reveal, allowedPaths, placement }] = (await agent.get('/v0/vault')).body.credentials
      expect({ reveal, allowedPaths, placement }).toEqual({ reveal: 'owner', ...bounds })
    })

    test('if a person renames a mandate (spending limit), a resource with a comma stays one resource', async () => {
      const agent = await till.service.newAgent()
      await till.service.platform.post(`${pathOf(agent)}/purse`, {})
      const resources = ['https://a.example/x,https://a.example/y']
      const given = { ...TERMS, name: 'Weather', hosts: [], resources }
      const { body } = await till.service.platform.post(`${pathOf(agent)}/mandates`, given)
      await desk.open(`projects/${agent.project.id}/purse`)
      await press('Change Weather')
      await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Tides')
      await save()
      const path = `${pathOf(agent)}/mandates/${(body as any).mandateId}`
      const stored = (await read(path)).resources
      expect(stored).toEqual((body as any).resources)
      expect(stored).toHaveLength(1)
    })

    test('if a person saves a form that shows a default limit, the service does not store the default as the project’s own limit', async () => {
      const agent = await till.service.newAgent()
      await desk.open(`projects/${agent.project.id}/settings`)
      await press('Change storage')
      await save()
      await press('Change daily limits')
      await page.getByLabel('Payments a day').fill('500')
      await save()
      const { rows } = await till.service.database.pool.query(
        'select storage_bytes, daily_settlements::int, daily_gas from project_limits where project_id = $1',
        [agent.project.id],
      )
      expect(rows).toEqual([{ storage_bytes: null, daily_settlements: 500, daily_gas: null }])
    })

    test('if one person renames a user while another reduces the user’s role, the reduced role stays', async () => {
      const agent = await till.service.newAgent()
      const headers = { 'x-purser-console': '1' }
      const people = `${till.service.url}/console/api/people`
      const { request } = desk.context
      const data = { name: 'Ada', email: 'ada@ada.example', role: 'operator', projectIds: [] }
      const added = await request.post(people, { headers, data })
      const { personId } = await added.json()
      await desk.open('people')
      await press('Change Ada')
      const least = { role: 'viewer', projectIds: [agent.project.id] }
      const lost = await request.patch(`${people}/${personId}`, { headers, data: least })
      expect(lost.status()).toBe(200)
      await page.getByRole('textbox', { name: 'Name' }).fill('Ada L.')
      await save()
      const found = await (await request.get(people, { headers })).json()
      expect(found.people.find((one: any) => one.personId === personId)).toMatchObject({
        name: 'Ada L.',
        ...least,
      })
    })

    test('if the first operator (the console’s initial user) is renamed while another request sets the operator’s email address, the new name stays', async () => {
      const headers = { 'x-purser-console': '1' }
      const people = `${till.service.url}/console/api/people`
      const { request } = desk.context
      const read = async () => {
        const { people: found } = await (await request.get(people, { headers })).json()
        return found.find(({ isFirst }: any) => isFirst)
      }
      const { personId } = await read()
      await desk.open('you')
      await press('Change')
      await request.patch(`${people}/${personId}`, { headers, data: { name: 'Chief' } })
      await page.getByLabel('E-mail address').fill('chief@ada.example')
      await save()
      expect(await read()).toMatchObject({ name: 'Chief', email: 'chief@ada.example' })
    })

    test('the console shows an active mandate (spending limit) even if a hundred newer mandates have ended', async () => {
      const agent = await till.service.newAgent()
      await till.service.platform.post(`${pathOf(agent)}/purse`, {})
      await giveMandate(agent, 'Weather')
      for (let n = 0; n < 100; n++) {
        const id = await giveMandate(agent, `Old ${n}`)
        await till.service.platform.delete(`${pathOf(agent)}/mandates/${id}`)
      }
      await desk.open(`projects/${agent.project.id}/purse`)
      await page.getByRole('button', { name: 'Give a mandate' }).waitFor()
      expect(await page.getByRole('button', { name: 'Change Weather' }).count()).toBe(1)
    })

    test('renaming a person keeps the person’s right to a project, even if the list in the form is too long to show this project', async () => {
      const agent = await till.service.newAgent()
      const headers = { 'x-purser-console': '1' }
      const people = `${till.service.url}/console/api/people`
      const { request } = desk.context
      const projectIds = [agent.project.id]
      const data = { name: 'Bea', email: 'bea@bea.example', role: 'owner', projectIds }
      expect((await request.post(people, { headers, data })).status()).toBe(201)
      await till.service.database.pool.query(
        `with added as (
         insert into projects (id, name, purpose, email_address, payments_enabled)
         select 'prj_other' || n, 'Other', 'SELLER', 'other' || n || '@mail.test', false
         from generate_series(1, 10000) n returning id
       )
       insert into api_keys (kind, project_id, lookup_prefix, key_hash)
       select 'project', id, 'loid-' || left(md5(id), 8), sha256(id::bytea) from added`,
      )
      await desk.open('people')
      await press('Change Bea')
      await page.getByRole('textbox', { name: 'Name' }).fill('Bea L.')
      await save()
      const found = await (await request.get(people, { headers })).json()
      const person = found.people.find(({ email }: any) => email === data.email)
      expect(person).toMatchObject({ name: 'Bea L.', projectIds })
    })
  },
)
