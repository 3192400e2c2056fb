import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Browser } from 'playwright-core'
import { COLOUR_RULES, judge, violations } from '../../support/console/axe.ts'
import {
  type ConsolePage,
  hasBrowser,
  openConsole,
  settled,
  startBrowser,
} from '../../support/console/browser.ts'
import { some } from '../../support/database/extent.ts'
import { waitForEnd } from '../../support/events/webhooks.ts'
import {
  deliverCode,
  deliverForged,
  deliverMail,
  EVENT_WEBHOOK,
  failJob,
  recordTraffic,
  type Scene,
  setUpMail,
  startScene,
  storeSecrets,
} from '../../support/scene.ts'
import '../../support/whole.ts'

/** Lists the widths of a phone and a desktop, in CSS pixels. */
const WIDTHS = some([360, 1440] as const)

let scene: Scene
let browser: Browser
/** Holds the name and the URL of each console screen. */
let screens: [string, string][]

beforeAll(async () => {
  if (!hasBrowser) return
  ;[scene, browser] = await Promise.all([startScene(), startBrowser()])
  const { agent, till } = scene
  await deliverMail(scene)
  await deliverForged(scene)
  await deliverCode(scene)
  await setUpMail(scene)
  await storeSecrets(scene)
  await failJob(scene)
  await recordTraffic(scene)
  const empty = await till.service.newAgent({ emailName: 'empty' })
  const paymentId = await scene.sell()
  const payment = (await agent.get(`/v0/payments/${paymentId}`)).body
  const { deliveryId } = payment.deliveries[0]
  await waitForEnd(agent, deliveryId)
  const { threads } = (await agent.get('/v0/threads')).body
  const threadOf = (subject: string) =>
    threads.find((thread: any) => thread.subject.startsWith(subject)).threadId
  const project = `projects/${agent.project.id}`
  screens = [
    ['overview', ''],
    ['projects', 'projects'],
    ['settings', `${project}/settings`],
    ['inbox', `${project}/inbox`],
    ['search', `${project}/inbox?q=offer`],
    ['search-nothing', `${project}/inbox?q=elephant`],
    ['thread-forged', `${project}/inbox/${threadOf('Urgent')}`],
    ['thread', `${project}/inbox/${threadOf('Offer')}`],
    ['thread-codes', `${project}/inbox/${threadOf('Your sign-in')}`],
    ['thread-html', `${project}/inbox/${threadOf('What')}`],
    ['drafts', `${project}/drafts`],
    ['outgoing', `${project}/outgoing`],
    ['outgoing-filtered', `${project}/outgoing?deliveryStatus=bounced&since=2026-01-05`],
    ['overview-month', '?range=month'],
    ['vault', `${project}/vault`],
    ['endpoints', `${project}/endpoints`],
    ['endpoint-trial', `${project}/endpoints/${payment.endpointId}`],
    ['sell-dialog', `${project}/endpoints`],
    ['payments', `${project}/payments`],
    ['payment', `${project}/payments/${paymentId}`],
    ['webhooks', `${project}/webhooks`],
    ['delivery', `${project}/webhooks/${deliveryId}`],
    ['activity', `${project}/activity`],
    ['health', 'health'],
    ['reports', 'reports'],
    ['jobs', 'jobs'],
    ['jobs-failed', 'jobs/failed'],
    ['apps', 'apps'],
    ['people', 'people'],
    ['person-dialog', 'people'],
    ['organization', 'organization'],
    ['you', 'you'],
    ['nowhere', 'nowhere'],
    ['project-dialog', 'projects'],
    ['project-refused', 'projects'],
    ['delete-dialog', `${project}/settings`],
    ['endpoint-dialog', `${project}/endpoints`],
    ['credential-dialog', `${project}/vault`],
    ['write-dialog', `${project}/inbox`],
    ['key-dialog', 'organization'],
    ['rule-dialog', `${project}/settings`],
    ['webhook-dialog', `${project}/settings`],
    ['change-webhook-dialog', `${project}/settings`],
    ['rotate-secret-dialog', `${project}/settings`],
    ['webhook-refused', `${project}/settings`],
    ['webhook-secret', `${project}/settings`],
    ['domain-dialog', 'organization'],
    ['empty-settings', `projects/${empty.project.id}/settings`],
    ['empty-inbox', `projects/${empty.project.id}/inbox`],
    ['empty-vault', `projects/${empty.project.id}/vault`],
    ['empty-endpoints', `projects/${empty.project.id}/endpoints`],
    ['empty-purse', `projects/${empty.project.id}/purse`],
  ]
})

afterAll(async () => {
  await browser?.close()
  await scene?.[Symbol.asyncDispose]()
})

/** Maps the name of a console screen to the button that opens an additional part of this screen. */
const OPENED: readonly [string, string][] = [
  ['thread-html', 'HTML'],
  ['thread-codes', 'Codes and links'],
  ['payment', 'Verify'],
  ['project-dialog', 'New project'],
  ['person-dialog', 'Add person'],
  ['project-refused', 'New project'],
  ['delete-dialog', 'Delete project'],
  ['endpoint-dialog', 'Register endpoint'],
  ['sell-dialog', 'Sell something'],
  ['credential-dialog', 'Store credential'],
  ['write-dialog', 'Write'],
  ['key-dialog', 'New platform key'],
  ['rule-dialog', 'Add rule'],
  ['webhook-dialog', 'Register webhook'],
  ['change-webhook-dialog', `Change the webhook to ${EVENT_WEBHOOK}`],
  ['rotate-secret-dialog', `Rotate secret of the webhook to ${EVENT_WEBHOOK}`],
  ['webhook-refused', `Change the webhook to ${EVENT_WEBHOOK}`],
  ['webhook-secret', `Rotate secret of the webhook to ${EVENT_WEBHOOK}`],
  ['domain-dialog', 'Add domain'],
]

/** Opens a console screen and shows all parts of the screen. */
async function enter({ page, open }: ConsolePage, [name, path]: [string, string]): Promise<void> {
  // A dialog stays open if only the URL changes, so the test loads the page again.
  if ((await page.getByRole('dialog').count()) > 0) await page.reload()
  await open(path)
  for (const [screen, button] of OPENED) {
    if (name === screen) await page.getByRole('button', { name: button, exact: true }).click()
  }
  if (name.endsWith('-dialog')) await page.getByRole('dialog').waitFor()
  if (name === 'thread-codes') {
    await page.getByRole('list', { name: 'One-time codes' }).waitFor()
  }
  if (name === 'key-dialog') {
    await page.getByRole('textbox', { name: 'Name' }).fill('deployment')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('textbox', { name: 'Platform key' }).waitFor()
  }
  if (name === 'project-refused') {
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Another Atlas')
    await page.getByRole('textbox', { name: 'Inbox address' }).fill('atlas')
    await page.getByRole('button', { name: 'Create project' }).click()
    await page.getByText('Inbox address must be free').waitFor()
  }
  if (name === 'webhook-refused') {
    for (const box of await page.getByRole('checkbox').all()) await box.uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Choose at least one event').waitFor()
  }
  if (name === 'webhook-secret') {
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate secret' }).click()
    await page.getByRole('textbox', { name: 'New webhook secret' }).waitFor()
  }
  if (name === 'vault') await page.getByRole('button', { name: 'Reveal' }).last().click()
  if (name === 'payment') await page.getByText('The signature is valid').waitFor()
  if (name === 'vault') await page.getByRole('button', { name: 'Hide' }).waitFor()
  if (name === 'thread-html') {
    await page.frameLocator('iframe').getByText('Twelve ships came in.').waitFor()
  }
  await settled(page)
}

describe.skipIf(!hasBrowser)('every console screen is accessible', () => {
  for (const width of WIDTHS) {
    test(`every console screen is accessible, fits the width of ${width} px, and loads nothing from other hosts`, async () => {
      // The page's content security policy forbids the injected axe script, so the test bypasses this policy.
      await using page = await openConsole(browser, scene.till.service, { width, bypassCSP: true })
      await page.context.addInitScript(axe.source)
      await page.page.reload()
      for (const screen of screens) {
        await enter(page, screen)
        const overflow = await page.page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        expect([screen[0], overflow]).toEqual([screen[0], 0])
        await judge(page, `${screen[0]}-${width}`)
      }
      const origin = new URL(scene.till.service.url).origin
      expect(page.requests.filter((url) => new URL(url).origin !== origin)).toEqual([])
      expect(page.requests.length).toBeGreaterThan(screens.length)
    })
  }

  test('the sign-in screen passes the accessibility check', async () => {
    for (const width of WIDTHS) {
      const viewport = { width, height: 780 }
      const context = await browser.newContext({
        viewport,
        bypassCSP: true,
        reducedMotion: 'reduce',
      })
      await context.addInitScript(axe.source)
      const page = await context.newPage()
      for (const [screen, path] of [
        ['signed-out', '/console'],
        ['sign-in', `/console/login#${'A'.repeat(43)}`],
      ] as const) {
        await page.goto(scene.till.service.url + path)
        await page.locator('h1').waitFor()
        await judge({ page }, `${screen}-${width}`)
      }
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('This link was used before').waitFor()
      await context.close()
    }
  })

  test('the accessibility check reports an image without a name, and dark text on a dark background', async () => {
    await using page = await openConsole(browser, scene.till.service, { bypassCSP: true })
    await page.context.addInitScript(axe.source)
    await page.page.reload()
    await page.open('projects')
    await page.page.evaluate(
      "document.querySelector('main').append(Object.assign(new Image(), { src: '/console/assets/icon.svg' }))",
    )
    expect((await violations(page)).join()).toContain('image-alt')
    await page.page.emulateMedia({ colorScheme: 'dark' })
    await page.page.addStyleTag({ content: 'main p, main td, main h1 { color: #222 }' })
    expect((await violations(page, COLOUR_RULES)).join()).toContain('color-contrast')
  })
})
