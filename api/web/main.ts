import { connectPage } from './account/connect.ts'
import { connectedApps } from './account/connectedApps.ts'
import { activity, organization } from './account/organization.ts'
import { people } from './account/people.ts'
import { projectSettings } from './account/projectSettings.ts'
import { projects } from './account/projects.ts'
import { awayPage, companyPage, signInChoices, signInPage } from './account/signIn.ts'
import { vault } from './account/vault/vault.ts'
import { yourSignIn } from './account/yourSignIn.ts'
import { AskError, ask, signedOut } from './kit/ask.ts'
import { h, replaceContent } from './kit/dom.ts'
import { refreshMoments, zoneName } from './kit/format.ts'
import { listenForKeys } from './kit/keys.ts'
import { enterPlace, returnToPlace } from './kit/list/place.ts'
import { connection, OfflineError, offlineBar } from './kit/offline.ts'
import { may, setRole } from './kit/role.ts'
import type { Screen } from './kit/screen.ts'
import { applyTheme, themeButton } from './kit/theme.ts'
import { setTitle } from './kit/title.ts'
import type { Role, Session } from './kit/types.ts'
import { button, heading, notice, toasts } from './kit/ui.ts'
import { approval, approvals } from './mail/approvals.ts'
import { inbox, outgoing } from './mail/inbox.ts'
import { thread } from './mail/thread.ts'
import { drafts } from './mail/writing/drafts.ts'
import { health } from './operations/health.ts'
import { jobs } from './operations/jobs.ts'
import { overview } from './operations/overview.ts'
import { reports } from './operations/reports.ts'
import { purse } from './purse/purse.ts'
import { deliveries } from './till/deliveries.ts'
import { delivery } from './till/delivery.ts'
import { endpoints } from './till/endpoints.ts'
import { endpointTrial } from './till/endpointTrial.ts'
import { payment } from './till/payment.ts'
import { payments } from './till/payments.ts'

const MOMENTS_MS = 5_000

/**
 * Maps the URL paths of the console to its screens. A path segment that begins with `:` matches any value of one
 * segment.
 */
const SCREENS: readonly [string, Screen][] = [
  ['', overview],
  ['projects', projects],
  ['projects/:/settings', projectSettings],
  ['projects/:/inbox', inbox],
  ['projects/:/inbox/:', thread],
  ['projects/:/drafts', drafts],
  ['projects/:/outgoing', outgoing],
  ['projects/:/approvals', approvals],
  ['projects/:/purse', purse],
  ['projects/:/approvals/:', approval],
  ['projects/:/vault', vault],
  ['projects/:/endpoints', endpoints],
  ['projects/:/endpoints/:', endpointTrial],
  ['projects/:/payments', payments],
  ['projects/:/payments/:', payment],
  ['projects/:/webhooks', deliveries],
  ['projects/:/webhooks/:', delivery],
  ['projects/:/activity', activity],
  ['health', health],
  ['reports', reports],
  ['jobs', jobs],
  ['jobs/:', jobs],
  ['apps', connectedApps],
  ['people', people],
  ['organization', organization],
  ['you', yourSignIn],
]

/** Lists the parts of the console, with the lowest role that may use each part. */
const SECTIONS: readonly [path: string, name: string, role: Role][] = [
  ['', 'Overview', 'operator'],
  ['projects', 'Projects', 'viewer'],
  ['health', 'Health', 'operator'],
  ['reports', 'Reports', 'operator'],
  ['jobs', 'Jobs', 'operator'],
  ['apps', 'Connected apps', 'owner'],
  ['people', 'People', 'operator'],
  ['organization', 'Organization', 'operator'],
  ['you', 'Your sign-in', 'viewer'],
]

/**
 * Returns the screen of an address. Returns `null` if no screen has this address, or if it ends within a
 * percent-encoded character.
 */
function findScreen(path: string): { screen: Screen; params: string[] } | null {
  const parts = path.split('/')
  for (const [pattern, screen] of SCREENS) {
    const wanted = pattern.split('/')
    if (wanted.length !== parts.length) continue
    if (wanted.every((part, n) => part === ':' || part === parts[n])) {
      try {
        return { screen, params: parts.filter((_, n) => wanted[n] === ':').map(decodeURIComponent) }
      } catch {
        return null
      }
    }
  }
  return null
}

/** Shows the console. @returns a function that stops the requests and the timers of the console. */
function startConsole(session: Session): () => void {
  const main = h('main', { id: 'main', tabindex: -1 })
  setRole(session.person.role)
  const sections = SECTIONS.filter(([, , role]) => may(role))
  const links = sections.map(([path, label]) => h('a', { href: `#/${path}` }, label))
  let leave = new AbortController()

  async function show(moveFocus: boolean): Promise<void> {
    const before = leave
    leave = new AbortController()
    const { signal } = leave
    enterPlace()
    before.abort()
    const address = location.hash.replace(/^#\/?/, '')
    const [asked = '', query] = address.split('?')
    const path = asked === '' && !may('operator') ? 'projects' : asked
    for (const [n, [section]] of sections.entries()) {
      links[n]!.ariaCurrent = path.split('/')[0] === section ? 'page' : null
    }
    const found = findScreen(path)
    main.ariaBusy = 'true'
    try {
      const content =
        found === null
          ? heading('Nothing here', 'This address leads nowhere.')
          : await found.screen({
              params: found.params,
              query: new URLSearchParams(query),
              session,
              signal,
            })
      if (signal.aborted) return
      replaceContent(main, content)
    } catch (error) {
      if (signal.aborted) return
      // While the service is unreachable, the old content stays on the console page. The new screen opens when the
      // service is reachable again.
      if (error instanceof OfflineError && main.childElementCount > 0) {
        connection.addEventListener('back', () => void show(moveFocus), { once: true, signal })
        main.ariaBusy = null
        return
      }
      replaceContent(
        main,
        heading('That did not work'),
        notice('bad', error instanceof Error ? error.message : String(error)),
      )
    }
    main.ariaBusy = null
    main.dataset.screen = address
    const title = main.querySelector('h1')
    setTitle(
      main.querySelector<HTMLElement>('[data-title]')?.dataset.title ??
        main.querySelector('nav[aria-label="Project"] [aria-current]')?.textContent,
      title?.textContent ?? 'Console',
    )
    const isBack = returnToPlace(main)
    if (moveFocus && !isBack && document.querySelector('dialog[open]') === null) {
      title?.focus({ preventScroll: true })
    }
  }

  const signOut = button('Sign out', async () => {
    await ask('/session', { method: 'DELETE' })
    location.replace('/console')
  })
  signOut.className = 'quiet'
  document.body.replaceChildren(
    h(
      'button',
      { type: 'button', class: 'skip', on: { click: () => main.focus() } },
      'Skip to content',
    ),
    h(
      'header',
      { class: 'bar' },
      h('p', { class: 'brand' }, 'Purser'),
      h('nav', { 'aria-label': 'Main' }, links),
      h(
        'div',
        { class: 'tools' },
        themeButton(),
        signOut,
        h('p', { class: 'note zone' }, `Times: ${zoneName()}`),
      ),
    ),
    offlineBar,
    main,
    toasts,
  )
  history.scrollRestoration = 'manual'
  const ends = new AbortController()
  addEventListener('hashchange', () => void show(true), { signal: ends.signal })
  listenForKeys(main)
  const timer = setInterval(refreshMoments, MOMENTS_MS)
  void show(false)
  return () => {
    ends.abort()
    leave.abort()
    clearInterval(timer)
  }
}

const showSignIn = async () => document.body.replaceChildren(await signInChoices())

/**
 * Lists the HTTP statuses that mean that the browser has no session: 401, and 429 after many requests without a
 * session.
 */
const SIGNED_OUT = [401, 429]

/** Returns the session of the browser. Returns `null` if the person must sign in. */
async function readSession(): Promise<Session | null> {
  try {
    return await ask<Session>('/session')
  } catch (error) {
    if (error instanceof AskError && SIGNED_OUT.includes(error.status)) return null
    throw error
  }
}

async function showConsole(): Promise<void> {
  const session = await readSession()
  if (session === null) return await showSignIn()
  const stop = startConsole(session)
  const end = () => {
    stop()
    void showSignIn()
  }
  // The listener runs only once. If the service later refuses a request of the sign-in page, such as a passkey, the
  // listener must not draw the sign-in page again.
  signedOut.addEventListener('end', end, { once: true })
}

applyTheme()
if (location.pathname === '/console/login') {
  document.body.replaceChildren(await signInPage())
} else if (location.pathname === '/console/company') {
  document.body.replaceChildren(await companyPage())
} else {
  try {
    if (location.pathname === '/console/connect') {
      document.body.replaceChildren(await connectPage(await readSession()))
    } else await showConsole()
  } catch (error) {
    document.body.replaceChildren(awayPage(error))
  }
}
