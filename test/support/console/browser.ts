/** Starts a real Chromium for the tests of the web console. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { createSignInLink } from '../../../sql/account/people/consoleSessions.ts'
import type { TestService } from '../service.ts'

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium'
const ARTEFACTS = join(import.meta.dir, '../../artefacts')

/**
 * Tells whether Chromium is installed. If it is not, the tests that need it are skipped with a notice.
 */
export const hasBrowser = existsSync(CHROMIUM)
if (!hasBrowser) {
  process.stderr.write(`no Chromium at ${CHROMIUM} (CHROMIUM names another): skipping its tests\n`)
}

/**
 * Sets the time limit of each wait of a page to the limit of `waitFor`. A whole test has a higher time limit, so that
 * the error names the wait and not the test.
 */
const ACTION_LIMIT_MS = 60_000

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Starts Chromium with a temporary profile. */
export async function startBrowser(): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, headless: true, args: FLAGS })
  const newContext = browser.newContext.bind(browser)
  browser.newContext = async (options) => {
    const context = await newContext(options)
    context.setDefaultTimeout(ACTION_LIMIT_MS)
    return context
  }
  return browser
}

export type ConsolePage = AsyncDisposable & {
  page: Page
  context: BrowserContext
  /** Lists the URLs that the web page, its frames and its workers have requested. */
  requests: string[]
  /** Holds the errors of the scripts of the page, and the requests that the content security policy has blocked. */
  complaints: string[]
  /** Opens a screen of the console, and waits until the screen shows its content. */
  open(path: string): Promise<void>
}

type Look = { width?: number; dark?: boolean; bypassCSP?: boolean; timeZone?: string }

/** Opens a page and signs in with a link and its button, as an operator does. */
export async function openConsole(
  browser: Browser,
  service: TestService,
  { width = 1440, dark = false, bypassCSP = false, timeZone }: Look = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({
    viewport: { width, height: width < 600 ? 780 : 900 },
    colorScheme: dark ? 'dark' : 'light',
    bypassCSP,
    reducedMotion: 'reduce',
    ...(timeZone === undefined ? {} : { timezoneId: timeZone }),
  })
  const page = await context.newPage()
  const requests: string[] = []
  const complaints: string[] = []
  context.on('request', (request) => requests.push(request.url()))
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  const token = await createSignInLink(service.database.pool)
  await page.goto(`${service.url}/console/login#${token}`)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  return {
    page,
    context,
    requests,
    complaints,
    async open(path) {
      await page.goto(`${service.url}/console#/${path}`)
      await page.locator(`main[data-screen="${path}"]:not([aria-busy])`).waitFor()
      await settled(page)
    },
    async [Symbol.asyncDispose]() {
      await context.close()
    },
  }
}

/** Waits until no part of the page is loading. */
export async function settled(page: Page): Promise<void> {
  await page.locator('.loading').first().waitFor({ state: 'detached' })
}

/** Waits until the page has handled a finished response and has drawn two frames afterwards. */
export const drawn = (page: Page): Promise<unknown> =>
  page.evaluate(`new Promise((done) =>
    setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done))))`)

/** Writes a screenshot of the page to `test/artefacts` if SCREENSHOTS is set. */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (!process.env.SCREENSHOTS) return
  mkdirSync(ARTEFACTS, { recursive: true })
  // A modal dialog covers only the visible part of the page, so its screenshot shows only this part.
  const fullPage = (await page.getByRole('dialog').count()) === 0
  await page.screenshot({ path: join(ARTEFACTS, `${name}.png`), fullPage })
}
