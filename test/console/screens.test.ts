import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Browser } from 'playwright-core'
import {
  type ConsolePage,
  hasBrowser,
  openConsole,
  screenshot,
  settled,
  startBrowser,
} from '../support/browser.ts'
import {
  deliverForged,
  deliverMail,
  EVENT_WEBHOOK,
  failJob,
  recordTraffic,
  type Scene,
  setUpMail,
  startScene,
  storeSecrets,
} from '../support/scene.ts'
import { waitForEnd } from '../support/webhooks.ts'

const LOOKS = [
  { width: 360, dark: false },
  { width: 360, dark: true },
  { width: 1440, dark: false },
  { width: 1440, dark: true },
] as const

let scene: Scene
let browser: Browser
/** Screens by name, and where they are. */
let screens: [string, string][]

beforeAll(async () => {
  if (!hasBrowser) return
  ;[scene, browser] = await Promise.all([startScene(), startBrowser()])
  const { agent, till } = scene
  await deliverMail(scene)
  await deliverForged(scene)
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
    ['thread-html', `${project}/inbox/${threadOf('What')}`],
    ['outgoing', `${project}/outgoing`],
    ['vault', `${project}/vault`],
    ['endpoints', `${project}/endpoints`],
    ['payments', `${project}/payments`],
    ['payment', `${project}/payments/${paymentId}`],
    ['webhooks', `${project}/webhooks`],
    ['delivery', `${project}/webhooks/${deliveryId}`],
    ['activity', `${project}/activity`],
    ['jobs', 'jobs'],
    ['jobs-failed', 'jobs/failed'],
    ['organization', 'organization'],
    ['nowhere', 'nowhere'],
    ['project-dialog', 'projects'],
    ['project-refused', 'projects'],
    ['delete-dialog', `${project}/settings`],
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
  ]
}, 60_000)

afterAll(async () => {
  await browser?.close()
  await scene?.[Symbol.asyncDispose]()
})

/** What is pressed once a screen is shown. */
const OPENED: readonly [string, string][] = [
  ['thread-html', 'HTML'],
  ['payment', 'Verify'],
  ['project-dialog', 'New project'],
  ['project-refused', 'New project'],
  ['delete-dialog', 'Delete project'],
  ['key-dialog', 'New platform key'],
  ['rule-dialog', 'Add rule'],
  ['webhook-dialog', 'Register webhook'],
  ['change-webhook-dialog', `Change the webhook to ${EVENT_WEBHOOK}`],
  ['rotate-secret-dialog', `Rotate secret of the webhook to ${EVENT_WEBHOOK}`],
  ['webhook-refused', `Change the webhook to ${EVENT_WEBHOOK}`],
  ['webhook-secret', `Rotate secret of the webhook to ${EVENT_WEBHOOK}`],
  ['domain-dialog', 'Add domain'],
]

/** Brings a screen to where there is most to see. */
async function enter({ page, open }: ConsolePage, [name, path]: [string, string]): Promise<void> {
  // A dialog stays up over a change of the address.
  if ((await page.getByRole('dialog').count()) > 0) await page.reload()
  await open(path)
  for (const [screen, button] of OPENED) {
    if (name === screen) await page.getByRole('button', { name: button, exact: true }).click()
  }
  if (name.endsWith('-dialog')) await page.getByRole('dialog').waitFor()
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

type Violation = { id: string; help: string; nodes: { target: string[]; html: string }[] }

async function violations({ page }: Pick<ConsolePage, 'page'>): Promise<string[]> {
  const found = await page.evaluate<Violation[]>(
    `axe.run(document, { resultTypes: ['violations'], rules: { region: { enabled: true } } }).then((result) => result.violations)`,
  )
  return found.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, html }) => `${id}: ${help} at ${target.join(' ')} ${html.slice(0, 200)}`),
  )
}

describe.skipIf(!hasBrowser)('every screen', () => {
  for (const look of LOOKS) {
    const name = `${look.width} px, ${look.dark ? 'dark' : 'light'}`
    test(`${name}: no violation of accessibility, nothing beyond the edge, nothing asked of elsewhere`, async () => {
      // axe is put into the page, which the page's own policy would forbid.
      await using page = await openConsole(browser, scene.till.service, {
        ...look,
        bypassCSP: true,
      })
      await page.context.addInitScript(axe.source)
      await page.page.reload()
      for (const screen of screens) {
        await enter(page, screen)
        const overflow = await page.page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        await screenshot(page.page, `${screen[0]}-${look.width}-${look.dark ? 'dark' : 'light'}`)
        expect([screen[0], overflow, await violations(page)]).toEqual([screen[0], 0, []])
      }
      const origin = new URL(scene.till.service.url).origin
      expect(page.requests.filter((url) => new URL(url).origin !== origin)).toEqual([])
      expect(page.requests.length).toBeGreaterThan(screens.length)
    }, 90_000)
  }

  test('before signing in are no worse', async () => {
    for (const look of LOOKS) {
      const name = `${look.width}-${look.dark ? 'dark' : 'light'}`
      const context = await browser.newContext({
        viewport: { width: look.width, height: 780 },
        colorScheme: look.dark ? 'dark' : 'light',
        bypassCSP: true,
      })
      await context.addInitScript(axe.source)
      const page = await context.newPage()
      for (const [screen, path] of [
        ['signed-out', '/console'],
        ['sign-in', `/console/login#${'A'.repeat(43)}`],
      ] as const) {
        await page.goto(scene.till.service.url + path)
        await page.locator('h1').waitFor()
        await screenshot(page, `${screen}-${name}`)
        expect([screen, await violations({ page })]).toEqual([screen, []])
      }
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('This link was used before').waitFor()
      await context.close()
    }
  }, 40_000)

  test('would be found out, were something wrong with it', async () => {
    await using page = await openConsole(browser, scene.till.service, { bypassCSP: true })
    await page.context.addInitScript(axe.source)
    await page.page.reload()
    await page.open('projects')
    await page.page.evaluate(
      "document.querySelector('main').append(Object.assign(new Image(), { src: '/console/assets/icon.svg' }))",
    )
    expect((await violations(page)).join()).toContain('image-alt')
  })
})
