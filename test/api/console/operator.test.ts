import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, openConsole, startBrowser } from '../../support/console/browser.ts'
import { status } from '../../support/events/receiver.ts'
import { waitForEnd } from '../../support/events/webhooks.ts'
import {
  deliverMail,
  failJob,
  PRICE_SHOWN,
  type Scene,
  startScene,
  storeSecrets,
} from '../../support/scene.ts'
import { createClient } from '../../support/service.ts'
import { pay, redeemToEnd } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

let scene: Scene
let browser: Browser
beforeAll(async () => {
  if (!hasBrowser) return
  ;[scene, browser] = await Promise.all([startScene(), startBrowser()])
})
afterAll(async () => {
  await browser?.close()
  await scene?.[Symbol.asyncDispose]()
})

const open = () => openConsole(browser, scene.till.service)
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const shownKey = async (page: Page, name: string): Promise<string> => {
  const key = await page.getByRole('textbox', { name }).inputValue()
  await press(page, 'I have stored it')
  return key
}

describe.skipIf(!hasBrowser)('an operator works at the console', () => {
  test('an operator signs in with a one-time link whose token does not stay in the browser, and signs out', async () => {
    await using console = await open()
    const { page } = console
    expect(page.url()).toBe(`${scene.till.service.url}/console`)
    await press(page, 'Sign out')
    await page.getByRole('heading', { name: 'You are not signed in' }).waitFor()
    await page.goto(`${scene.till.service.url}/console/login`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.getByText('First sign-in, or no mail?').click()
    await page.getByText('npm run console:login').waitFor()
    expect(await page.getByRole('button', { name: 'Sign in' }).count()).toBe(0)
  })

  test('an operator creates a platform key, sees the key once, and revokes it', async () => {
    await using console = await open()
    const { page } = console
    await page.getByRole('link', { name: 'Organization' }).click()
    await press(page, 'New platform key')
    await page.getByLabel('Name').fill('deployment')
    await press(page, 'Create key')
    const key = await shownKey(page, 'Platform key')
    expect(key).toMatch(/^lopk-[0-9a-f]{64}$/)
    const platform = createClient(scene.till.service.url, key)
    expect((await platform.get('/v0/platform/projects')).status).toBe(200)

    const row = page.getByRole('row', { name: 'deployment' })
    expect(await row.getByText(key.slice(0, 17)).count()).toBe(1)
    expect(await page.content()).not.toContain(key)
    await row.getByRole('button', { name: 'Revoke' }).click()
    await press(page, 'Revoke key')
    await row.getByText('revoked').waitFor()
    expect((await platform.get('/v0/platform/projects')).status).toBe(401)
  })

  test('an operator creates a project, reduces its scopes, enables payments, rotates its API key and deletes the project', async () => {
    await using console = await open()
    const { page } = console
    await console.open('projects')
    await press(page, 'New project')
    await page.getByLabel('Name', { exact: true }).fill('Borealis')
    await page.getByLabel('Inbox address').fill('borealis')
    await page.getByRole('checkbox', { name: 'vault:write' }).uncheck()
    await press(page, 'Create project')
    const first = createClient(scene.till.service.url, await shownKey(page, 'Project key'))
    const whoami = (await first.get('/v0/whoami')).body
    expect([whoami.name, whoami.email, whoami.scopes.includes('vault:write')]).toEqual([
      'Borealis',
      'borealis@mail.test',
      false,
    ])

    await press(page, 'Change scopes')
    await page.getByRole('checkbox', { name: 'mail:send' }).uncheck()
    await page.getByRole('dialog').getByRole('button', { name: 'Change scopes' }).click()
    await page.getByText('Scopes changed').waitFor()
    expect((await first.get('/v0/whoami')).body.scopes).not.toContain('mail:send')

    await press(page, 'Change payments')
    await page.getByRole('checkbox', { name: 'Accept payments' }).check()
    await press(page, 'Save')
    await page.getByText('Enter the address that receives the payments').waitFor()
    await page.getByLabel('Paid to').fill('0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC')
    await press(page, 'Save')
    await page.getByText('enabled').waitFor()

    await press(page, 'Change daily limits')
    await page.getByLabel('Payments a day').fill('500')
    await page.getByLabel('Gas a day').fill('')
    await press(page, 'Save')
    await page.getByText('0 of 500').waitFor()
    // The daily limit of gas applies to the settlements and to the purse, each with a count of its own.
    await waitFor('both counts of gas', async () => {
      return (await page.getByText('0 of 10,000,000,000').count()) === 2
    })

    await press(page, 'Change retention')
    await page.getByLabel('Originals of mail').fill('45')
    await press(page, 'Save')
    await page.getByText('Retention changed').waitFor()
    await page.getByText('45 days').waitFor()

    await press(page, 'Rotate key')
    const dialog = page.getByRole('dialog')
    await page.getByLabel('Type “Borealis” to confirm').fill('borealis')
    await dialog.getByRole('button', { name: 'Rotate key' }).click()
    await page.getByText('Type exactly: Borealis').waitFor()
    expect((await first.get('/v0/whoami')).status).toBe(200)
    await page.getByLabel('Type “Borealis” to confirm').fill('Borealis')
    await dialog.getByRole('button', { name: 'Rotate key' }).click()
    const second = createClient(scene.till.service.url, await shownKey(page, 'New project key'))
    expect((await first.get('/v0/whoami')).status).toBe(401)
    expect((await second.get('/v0/whoami')).status).toBe(200)

    await press(page, 'Delete project')
    await page.getByLabel('Type “Borealis” to confirm').fill('Borealis')
    await press(page, 'Delete permanently')
    await page.getByRole('heading', { name: 'Projects' }).waitFor()
    expect((await second.get('/v0/whoami')).status).toBe(401)
    await page.getByRole('link', { name: 'Atlas' }).waitFor()
    expect(await page.getByRole('link', { name: 'Borealis' }).count()).toBe(0)
  })

  test('an operator reads a new mail with collapsed quotes and its original source, and the mail stays unread', async () => {
    await using console = await open()
    const { page } = console
    await console.open(`projects/${scene.agent.project.id}/inbox`)
    await page.getByText('No mail yet').waitFor()
    await deliverMail(scene)
    const row = page.getByRole('row', { name: 'Offer for the analytical engine' })
    await row.getByText('Ordered. They arrive on Tuesday.').waitFor()
    expect(await row.getByText('unread').count()).toBe(1)
    await page.getByRole('link', { name: 'Offer for the analytical engine' }).click()
    const reply = page.getByRole('article').nth(2)
    await reply.getByText('Ordered. They arrive on Tuesday.').waitFor()
    const quoted = reply.getByText('> Yes, please. Two of them.')
    expect(await quoted.isVisible()).toBe(false)
    await reply.getByText('Quoted text and signature').click()
    expect(await quoted.isVisible()).toBe(true)
    await reply.getByRole('button', { name: 'Raw' }).click()
    await reply.getByText('Message-ID: <ordered@example.com>').waitFor()
    await page.getByRole('article').nth(1).getByText('captured').waitFor()

    await console.open(`projects/${scene.agent.project.id}/outgoing`)
    await page.getByText('Outgoing mail is captured').waitFor()
    await page.getByRole('row', { name: 'Re: Offer' }).getByText('captured').waitFor()
    const { body } = await scene.agent.get('/v0/messages?labels=unread')
    expect(body.count).toBe(3)
  })

  test('a payment settles without a page reload, and the operator then verifies its receipt', async () => {
    const { till, agent, resource } = scene
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/payments`)
    await page.getByText('No payments yet').waitFor()
    // The chain mines no block until the page has shown the unsettled payment, so that the test sees the page before
    // and after the settlement.
    await till.client.request({ method: 'evm_setAutomine' as never, params: [false] as never })
    await till.client.request({ method: 'evm_setIntervalMining' as never, params: [0] as never })
    const redeemed = redeemToEnd(agent, (await pay()).header, { resource })
    await page.getByRole('row', { name: PRICE_SHOWN }).getByText('settling').waitFor()
    await till.client.request({ method: 'evm_setAutomine' as never, params: [true] as never })
    await till.client.request({ method: 'evm_mine' as never })
    const { body } = await redeemed
    expect(body.ok).toBe(true)
    await page.getByRole('row', { name: PRICE_SHOWN }).getByText('settled').waitFor()

    await page.getByRole('link', { name: PRICE_SHOWN }).click()
    await page.getByText(body.txHash).first().waitFor()
    await press(page, 'Verify')
    await page.getByText(`The signature is valid: ${body.payer} paid for ${resource}`).waitFor()

    // The browser checks the signature of a payment's receipt, and refuses the receipt if one character is changed.
    await page.route(`**/v0/payments/${body.paymentId}`, async (route) => {
      const answer = await route.fetch()
      const payment = await answer.json()
      payment.signedReceipt.body.amountUsdcRaw = '10001'
      await route.fulfill({ response: answer, json: payment })
    })
    await page.reload()
    await press(page, 'Verify')
    await page.getByText('The receipt is not valid: bad_signature').waitFor()
  })

  test('an operator repeats a webhook delivery and sees the new attempt', async () => {
    const { agent, receiver } = scene
    receiver.answer = status(400, 'not today')
    const payment = (await agent.get(`/v0/payments/${await scene.sell()}`)).body
    const { deliveryId } = payment.deliveries[0]
    const { idempotencyKey } = await waitForEnd(agent, deliveryId)
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/webhooks`)
    await page.getByRole('row').filter({ hasText: 'aborted' }).getByRole('link').click()
    await page.getByText('not today').waitFor()
    receiver.answer = status(200, 'taken')
    await press(page, 'Replay')
    await page.getByText('taken').waitFor()
    await page.getByText('delivered').waitFor()
    const bodies = receiver.requests
      .filter(({ headers }) => headers['x-service-idempotency-key'] === idempotencyKey)
      .map(({ body }) => body.toString())
    expect(bodies).toHaveLength(2)
    expect(bodies[0]).toBe(bodies[1]!)
    const { logs } = (await agent.get('/v0/logs?category=webhook')).body
    expect(logs[0]).toMatchObject({
      action: 'webhook.replay',
      subject: deliveryId,
      actor: expect.stringMatching(/^console:per_/),
    })
  })

  test('an operator reveals a secret with a click, and the audit log records the read', async () => {
    await storeSecrets(scene)
    await using console = await open()
    const { page } = console
    await console.open(`projects/${scene.agent.project.id}/vault`)
    const secret = page.getByRole('region', { name: 'harbour/db' })
    await secret.waitFor()
    expect(await page.content()).not.toContain('barnacle')
    const reads = async () =>
      (await scene.agent.get('/v0/logs?category=vault&action=vault.get')).body.count
    expect(await reads()).toBe(0)
    await secret.getByRole('button', { name: 'Reveal' }).click()
    await secret.getByText('barnacle').waitFor()
    expect(await reads()).toBe(1)
    await secret.getByRole('button', { name: 'Hide' }).click()
    expect(await page.content()).not.toContain('barnacle')
    await console.open(`projects/${scene.agent.project.id}/activity`)
    await page.getByRole('row', { name: 'vault.get' }).getByText('harbour/db').waitFor()
  })

  test('an operator uses a form to withhold a secret from the agent and to allow a host for the secret', async () => {
    const { agent } = scene
    await agent.put('/v0/vault/bank', { type: 'LOGIN', data: { password: 'correct horse' } })
    await using console = await open()
    const { page } = console
    await console.open(`projects/${agent.project.id}/vault`)
    const card = page.getByRole('region', { name: 'bank' })
    await card.getByText('the agent and you').waitFor()
    await card.getByRole('button', { name: 'Protect' }).click()
    await page.getByLabel('Read by').selectOption('owner')
    await page.getByLabel('Allowed hosts').fill('bank.example, *.pay.example')
    await press(page, 'Save')
    await card.getByText('you alone; the agent uses it unseen').waitFor()
    await card.getByText('bank.example *.pay.example').waitFor()
    expect((await agent.get('/v0/vault/bank')).status).toBe(403)
    await card.getByRole('button', { name: 'Reveal' }).click()
    await card.getByText('correct horse').waitFor()
    await card.getByRole('button', { name: 'Protect' }).click()
    await page.getByLabel('Allowed hosts').fill('https://bank.example/')
    await press(page, 'Save')
    await page.getByText('Allowed hosts must be a host').waitFor()
    await page.getByLabel('Allowed hosts').fill('bank.example')
    await page.getByLabel('Allowed methods').fill('POST')
    await page.getByLabel('Allowed paths').fill('/login')
    await page.getByLabel('Placement').fill('json:password')
    await press(page, 'Save')
    await page.getByText('Placement must be header:NAME').waitFor()
    await page.getByLabel('Placement').fill('password@json:/password')
    await press(page, 'Save')
    await card.getByText('/login', { exact: true }).waitFor()
    expect((await agent.get('/v0/vault')).body.credentials[0]).toMatchObject({
      ...{ allowedHosts: ['bank.example'], allowedMethods: ['POST'], allowedPaths: ['/login'] },
      placement: ['password@json:/password'],
    })
    await card.getByRole('button', { name: 'Protect' }).click()
    await page.keyboard.press('Escape')
    await console.open(`projects/${agent.project.id}/activity`)
    await page.getByRole('row', { name: 'vault.protect' }).getByText('bank').first().waitFor()
  })

  test('an operator retries a failed job, and then sees no failed job', async () => {
    await using console = await open()
    const { page } = console
    // The console overview shows the failed job without a reload of the page.
    const id = await failJob(scene)
    await page.getByRole('link', { name: 'Look at them' }).click()
    await page.getByText('TypeError: something was not there').waitFor()
    await press(page, 'Retry')
    await page.getByText('Failed: none').waitFor()
    await waitFor('the job to be done', async () => {
      const { rowCount } = await scene.till.service.database.pool.query(
        'select from graphile_worker.jobs where id = $1',
        [id],
      )
      return rowCount === 0
    })
  })

  test('an operator signs in, creates a platform key and signs out with the keyboard only', async () => {
    await using console = await open()
    const { page } = console
    const focused = () =>
      page.evaluate<string>('document.activeElement?.textContent?.trim().slice(0, 40) ?? ""')
    const tabTo = async (name: string) => {
      for (let presses = 0; presses < 40; presses++) {
        await page.keyboard.press('Tab')
        if ((await focused()) === name) return
      }
      throw new Error(`no way by keyboard to ${name}`)
    }
    await page.reload()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('Skip to content')
    await tabTo('Organization')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Organization settings' }).waitFor()
    await waitFor('the focus to follow', async () => (await focused()) === 'Organization settings')
    await tabTo('New platform key')
    await page.keyboard.press('Enter')
    await page.keyboard.type('by hand')
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'Platform key' }).waitFor()
    await tabTo('I have stored it')
    await page.keyboard.press('Enter')
    await page.getByRole('row', { name: 'by hand' }).waitFor()
    // The Escape key cancels a dialog, and the focus returns to the button that opened it.
    await tabTo('Revoke')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    expect(await focused()).toBe('Revoke')
  })

  test('a console screen keeps the keyboard focus while its list reloads', async () => {
    await using console = await open()
    const { page } = console
    const { agent, till } = scene
    await console.open(`projects/${agent.project.id}/inbox`)
    const link = page.getByRole('link', { name: 'Offer for the analytical engine' })
    await link.focus()
    await till.service.deliver({
      from: 'bob@example.com',
      to: agent.address,
      subject: 'While you were looking',
      text: 'Hi.',
    })
    await page.getByRole('link', { name: 'While you were looking' }).waitFor()
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe(
      'Offer for the analytical engine',
    )
  })

  test('an operator chooses a color theme, which overrides the theme of the system and is stored', async () => {
    await using console = await open()
    const { page } = console
    const ground = () =>
      page.evaluate<string>('getComputedStyle(document.body.parentElement).backgroundColor')
    expect(await ground()).toBe('rgb(246, 246, 243)')
    await press(page, 'Dark theme')
    expect(await ground()).toBe('rgb(15, 19, 21)')
    await page.reload()
    await page.getByRole('button', { name: 'Light theme' }).waitFor()
    expect(await ground()).toBe('rgb(15, 19, 21)')
  })

  test('an operator uses the console without a page error and without blocked content', async () => {
    await using console = await open()
    const { page, complaints } = console
    const project = `projects/${scene.agent.project.id}`
    for (const tab of [
      'inbox',
      'outgoing',
      'vault',
      'endpoints',
      'payments',
      'webhooks',
      'activity',
      'settings',
    ]) {
      await console.open(`${project}/${tab}`)
    }
    await console.open('jobs/delayed')
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Queues' }).waitFor()
    expect(complaints).toEqual([])
  })
})
