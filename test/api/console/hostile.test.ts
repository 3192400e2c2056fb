import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { framedHtml } from '../../../api/console/approval/framedHtml.ts'
import { createProject } from '../../../sql/account/projects/projects.ts'
import { hasBrowser, openConsole, settled, startBrowser } from '../../support/console/browser.ts'
import { type Receiver, startReceiver } from '../../support/events/receiver.ts'
import {
  createClient,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

/**
 * Holds the server of the attacker in these tests. Any request to this server would prove that the console leaks data.
 */
let evil: Receiver
/** Returns a hostile script that opens a dialog and calls the attacker's server. */
const run = () => `alert(1);fetch('${evilOrigin()}/ran')`
const evilOrigin = () => `http://127.0.0.1:${evil.port}`
const markup = () =>
  `"'><img src=x onerror="${run()}"><svg onload="${run()}"><script>${run()}</script>`

/** Returns an HTML mail body that contains known attacks. */
const hostileHtml =
  () => `<html><head><base href="${evilOrigin()}/"><meta http-equiv="refresh" content="0;url=${evilOrigin()}/refresh">
<link rel="stylesheet" href="${evilOrigin()}/style.css"><link rel="dns-prefetch" href="//127.0.0.1:${evil.port}"><link rel="preconnect" href="${evilOrigin()}">
<style>@import url(${evilOrigin()}/import.css); body{background:url(${evilOrigin()}/background.png)} @font-face{font-family:x;src:url(${evilOrigin()}/font)} *{font-family:x}</style>
<script>${run()};top.document.title='taken';parent.location='${evilOrigin()}/parent'</script><script src="${evilOrigin()}/script.js"></script></head>
<body onload="${run()}" background="${evilOrigin()}/bg.png"><p>Read me</p>
<img src="${evilOrigin()}/pixel.gif" srcset="${evilOrigin()}/big.gif 2x" onerror="${run()}"><img src="//127.0.0.1:${evil.port}/relative"><picture><source srcset="${evilOrigin()}/source.png"><img src="x:"></picture>
<svg onload="${run()}"><image href="${evilOrigin()}/svg.png"/><script>${run()}</script><animate onbegin="${run()}" attributeName=x dur=1s></svg>
<math><mtext><table><mglyph><style><img src=x onerror="${run()}"></style></mglyph></table></mtext></math>
<iframe src="${evilOrigin()}/frame"></iframe><iframe srcdoc="<script>${run()}</script>"></iframe><object data="${evilOrigin()}/object"></object><embed src="${evilOrigin()}/embed">
<video src="${evilOrigin()}/video" poster="${evilOrigin()}/poster"></video><audio src="${evilOrigin()}/audio" autoplay></audio>
<form action="${evilOrigin()}/form" id=f><input name=q autofocus onfocus="${run()}"><button>Go</button></form><input type=image src="${evilOrigin()}/input.png">
<a id="link" href="javascript:${run()}">click</a><a href="${evilOrigin()}/link" target="_top" ping="${evilOrigin()}/ping">leave</a>
<div style="background-image:url(${evilOrigin()}/inline.png);position:fixed;inset:0">over everything</div>
<details open ontoggle="${run()}"><summary>x</summary></details><marquee onstart="${run()}">x</marquee>
<noscript><p title="</noscript><img src=x onerror=${run()}>"></noscript></body></html>`

let service: TestService
let browser: Browser
beforeAll(async () => {
  service = await startTestService({ pools: ['inbound'] })
  evil = await startReceiver((_request, response) => {
    response.setHeader('access-control-allow-origin', '*')
    response.end()
  })
  if (hasBrowser) browser = await startBrowser()
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
  await evil?.[Symbol.asyncDispose]()
})

/**
 * Records which dialogs and windows a page opens, and clears the list of requests that reached the attacker's server.
 */
function watch(page: Page): string[] {
  evil.requests.length = 0
  const seen: string[] = []
  page.on('dialog', (dialog) => {
    seen.push(`dialog ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.context().on('page', (opened) => seen.push(`window ${opened.url()}`))
  return seen
}

describe.skipIf(!hasBrowser)('the console shows hostile content safely', () => {
  test('the hostile test content runs and loads outside of the console, which proves that the test can detect it', async () => {
    const page = await (await browser.newContext()).newPage()
    const seen = watch(page)
    await page.setContent(hostileHtml()).catch(() => {})
    await page.setContent(markup()).catch(() => {})
    expect(seen).toContain('dialog 1')
    await waitFor('the stranger to hear of it', () => evil.requests.length >= 5)
  })

  test('hostile subjects, senders, bodies, file names, headers, names and metadata neither run nor load in the console', async () => {
    const { project, rawKey } = await createProject(service.database.pool, {
      name: markup(),
      purpose: 'SELLER',
      emailAddress: 'target@mail.test',
      scopes: ['mail:read', 'vault:read', 'vault:write'],
    })
    const agent = createClient(service.url, rawKey)
    await service.deliver({
      from: { name: markup(), address: 'attacker@example.com' },
      to: { name: markup(), address: 'target@mail.test' },
      cc: `"${run()}" <cc@example.com>`,
      subject: markup(),
      text: markup(),
      html: hostileHtml(),
      headers: { 'X-Hostile': markup(), 'List-Unsubscribe': `<javascript:${run()}>` },
      messageId: `<"${'<script>'}"@example.com>`,
      attachments: [
        {
          filename: `${markup()}.html`,
          content: `<script>${run()}</script>`,
          contentType: 'text/html',
        },
        {
          filename: 'a.svg',
          content: `<svg xmlns="http://www.w3.org/2000/svg" onload="${run()}"/>`,
          contentType: 'image/svg+xml',
          cid: 'a',
        },
      ],
    })
    await waitForMessages({ ...agent } as never, 1)
    await agent.put(`/v0/vault/${encodeURIComponent(markup().slice(0, 100))}`, {
      type: 'CUSTOM',
      data: { [markup()]: markup() },
      metadata: { [markup()]: markup(), uri: `javascript:${run()}` },
    })
    await agent.post('/v0/webhooks', {
      url: 'https://example.com/',
      events: ['message.received'],
    })
    // The API would encode markup in the URL of a webhook, so the test writes the URL directly to the database.
    await service.database.pool.query('update project_webhooks set url = $1', [markup()])

    await using console = await openConsole(browser, service)
    const { page } = console
    const seen = watch(page)
    await console.open('projects')
    await page.getByRole('link', { name: markup().slice(0, 20) }).click()
    await page.getByRole('table', { name: 'Threads' }).getByRole('link').click()
    const message = page.getByRole('article')
    await message.getByText('<script>').first().waitFor()
    for (const view of ['Raw', 'Text', 'HTML']) {
      await message.getByRole('button', { name: view, exact: true }).click()
    }
    const frame = page.frameLocator('iframe')
    await frame.getByText('Read me').waitFor()
    await frame.locator('#link').dispatchEvent('click')
    await frame.getByText('leave').dispatchEvent('click')
    for (const file of await message.getByRole('listitem').getByRole('button').all()) {
      const saved = page.waitForEvent('download')
      await file.click()
      expect((await saved).url()).toStartWith('blob:')
    }
    await console.open(`projects/${project.id}/vault`)
    await page.getByRole('button', { name: 'Reveal' }).click()
    await page.getByRole('button', { name: 'Hide' }).waitFor()
    for (const tab of ['activity', 'settings', 'outgoing']) {
      await console.open(`projects/${project.id}/${tab}`)
      await settled(page)
    }
    await console.open(`projects/${project.id}/settings`)
    for (const action of ['Change the webhook', 'Rotate secret', 'Delete the webhook']) {
      await page.getByRole('button', { name: `${action} ` }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    }
    expect([seen, evil.requests.map(({ path }) => path)]).toEqual([[], []])
    expect(new URL(page.url()).origin).toBe(service.url)
    expect(await page.title()).not.toBe('taken')
  })

  test('a mail cannot leave its frame, because the frame has an opaque origin and may not use cookies, storage or navigation', async () => {
    await using console = await openConsole(browser, service)
    const { page } = console
    await console.open('projects')
    await page.getByRole('link', { name: markup().slice(0, 20) }).click()
    await page.getByRole('table', { name: 'Threads' }).getByRole('link').click()
    await page.getByRole('button', { name: 'HTML', exact: true }).click()
    await page.frameLocator('iframe').getByText('Read me').waitFor()
    const frame = page.frames()[1]!
    expect(await frame.evaluate<string>('self.origin')).toBe('null')
    const tried = await frame.evaluate<Record<string, string>>(`(() => {
      const attempt = (work) => { try { return String(work()) } catch (error) { return error.name } }
      return {
        cookie: attempt(() => document.cookie),
        storage: attempt(() => localStorage.length),
        parent: attempt(() => parent.document.title),
      }
    })()`)
    expect(tried).toEqual({
      cookie: 'SecurityError',
      storage: 'SecurityError',
      parent: 'SecurityError',
    })
    // The frame cannot navigate, because the `frame-src` directive of the page's content security policy stops it.
    const seen = watch(page)
    await frame.evaluate(`location.href = '${evilOrigin()}/elsewhere'`).catch(() => {})
    await page.getByRole('button', { name: 'Text' }).click()
    await page.getByRole('button', { name: 'Raw' }).click()
    await page.getByRole('region', { name: 'Original message' }).waitFor()
    expect([seen, evil.requests.map(({ path }) => path)]).toEqual([[], []])
  })
})

test('the console removes from a mail all elements that load or run content, navigate the page or submit data', () => {
  const shown = framedHtml({ html: hostileHtml(), images: [] })
  // The test removes style elements before the comparison, because only the content security policy stops the requests
  // that they cause.
  const body = shown.slice(shown.indexOf('<body>')).replace(/<style>[\s\S]*?<\/style>/g, '')
  expect(body).not.toMatch(
    /<(script|iframe|object|embed|link|meta|base|form|video|audio|source)\b/i,
  )
  expect(body).not.toMatch(/\s(on\w+|srcset|ping|background|href|src|poster|action)\s*=/i)
  expect(body).toContain('Read me')
})

test('the console shows an inline image of a mail and does not fetch a remote image', () => {
  const images = [{ contentId: '<a b@x>', contentType: 'image/png', bytes: Buffer.from('png') }]
  const html = '<img src="cid:a%20b@x"><img src="cid:other"><img src="data:image/gif;base64,R0=">'
  const shown = framedHtml({ html, images })
  expect(shown).toContain('<img src="data:image/png;base64,cG5n">')
  expect(shown).toContain('<img src="data:image/gif;base64,R0=">')
  expect(shown).not.toContain('cid:')
})

test('the console shows each inline image of a mail, but limits the repetitions so that the page does not become huge', () => {
  const images = [{ contentId: 'a', contentType: 'image/png', bytes: Buffer.alloc(90_000) }]
  const shown = framedHtml({ html: '<img src=cid:a>'.repeat(10_000), images })
  expect(shown.split('src="data:')).toHaveLength(1 + Math.floor((12 * 1024 * 1024) / 120_022))
  expect(shown.length).toBeLessThan(13 * 1024 * 1024)
})

test('the console removes a remote image in a noscript element, and each address of an image that has several', () => {
  const remote = `${evilOrigin()}/pixel.gif`
  for (const html of [
    `<noscript><img src="${remote}"><link rel="preconnect" href="${remote}"></noscript>`,
    `<img src="${remote}" src="${remote}">`,
    `<img src="cid:none" SRC=${remote}>`,
  ]) {
    expect(framedHtml({ html: `<p>Read me</p>${html}`, images: [] })).not.toContain(remote)
  }
})

test('the console does not show the HTML of a mail if it has more than 500,000 characters', () => {
  const start = '<p>Read me</p>'
  const whole = start + ' '.repeat(500_000 - start.length)
  expect(framedHtml({ html: whole, images: [] })).toContain('Read me')
  const shown = framedHtml({ html: `${whole} `, images: [] })
  expect(shown).not.toContain('Read me')
  expect(shown).toContain('too long for this page')
})

test('the code of the console page never parses markup, and has no inline styles or scripts', () => {
  const folder = join(import.meta.dir, '../../../api/web')
  const files = (readdirSync(folder, { recursive: true }) as string[]).filter((name) =>
    name.endsWith('.ts'),
  )
  expect(files.length).toBeGreaterThan(20)
  for (const name of files) {
    const found =
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTML|srcdoc|\beval\(|new Function|importScripts/.exec(
        readFileSync(join(folder, name), 'utf8'),
      )
    expect([name, found?.[0]]).toEqual([name, undefined])
  }
})
