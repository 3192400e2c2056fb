import { ask, signedOut } from './ask.ts'
import { delivery } from './delivery.ts'
import { h, replaceContent } from './dom.ts'
import { refreshMoments } from './format.ts'
import { inbox, outgoing } from './inbox.ts'
import { jobs } from './jobs.ts'
import { activity, organization } from './organization.ts'
import { overview } from './overview.ts'
import { payment } from './payment.ts'
import { projectSettings } from './projectSettings.ts'
import { projects } from './projects.ts'
import type { Screen } from './screen.ts'
import { endpoints, payments, webhooks } from './selling.ts'
import { signedOutPage, signInPage } from './signIn.ts'
import { applyTheme, themeButton } from './theme.ts'
import { thread } from './thread.ts'
import type { Session } from './types.ts'
import { button, heading, notice, toasts } from './ui.ts'
import { vault } from './vault.ts'

const MOMENTS_MS = 5_000

/** Screens by path; `:` stands for one value. */
const SCREENS: readonly [string, Screen][] = [
  ['', overview],
  ['projects', projects],
  ['projects/:/settings', projectSettings],
  ['projects/:/inbox', inbox],
  ['projects/:/inbox/:', thread],
  ['projects/:/outgoing', outgoing],
  ['projects/:/vault', vault],
  ['projects/:/endpoints', endpoints],
  ['projects/:/payments', payments],
  ['projects/:/payments/:', payment],
  ['projects/:/webhooks', webhooks],
  ['projects/:/webhooks/:', delivery],
  ['projects/:/activity', activity],
  ['jobs', jobs],
  ['jobs/:', jobs],
  ['organization', organization],
]

const SECTIONS: readonly [string, string][] = [
  ['', 'Overview'],
  ['projects', 'Projects'],
  ['jobs', 'Jobs'],
  ['organization', 'Organization'],
]

function findScreen(path: string): { screen: Screen; params: string[] } | null {
  const parts = path.split('/')
  for (const [pattern, screen] of SCREENS) {
    const wanted = pattern.split('/')
    if (wanted.length !== parts.length) continue
    if (wanted.every((part, n) => part === ':' || part === parts[n])) {
      return { screen, params: parts.filter((_, n) => wanted[n] === ':').map(decodeURIComponent) }
    }
  }
  return null
}

function startConsole(session: Session): void {
  const main = h('main', { id: 'main', tabindex: -1 })
  const links = SECTIONS.map(([path, label]) => h('a', { href: `#/${path}` }, label))
  let leave = new AbortController()

  async function show(moveFocus: boolean): Promise<void> {
    leave.abort()
    leave = new AbortController()
    const { signal } = leave
    const address = location.hash.replace(/^#\/?/, '')
    const [path = '', query] = address.split('?')
    for (const [n, [section]] of SECTIONS.entries()) {
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
      replaceContent(
        main,
        heading('That did not work'),
        notice('bad', error instanceof Error ? error.message : String(error)),
      )
    }
    main.ariaBusy = null
    main.dataset.screen = address
    const title = main.querySelector('h1')
    document.title = `${title?.textContent ?? 'Console'} – Purser`
    scrollTo(0, 0)
    if (moveFocus && document.querySelector('dialog[open]') === null) {
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
      h('div', { class: 'tools' }, themeButton(), signOut),
    ),
    main,
    toasts,
  )
  addEventListener('hashchange', () => void show(true))
  setInterval(refreshMoments, MOMENTS_MS)
  void show(false)
}

applyTheme()
if (location.pathname === '/console/login') {
  document.body.replaceChildren(signInPage())
} else {
  try {
    const session = await ask<Session>('/session')
    startConsole(session)
    signedOut.addEventListener('end', () => document.body.replaceChildren(signedOutPage()))
  } catch {
    document.body.replaceChildren(signedOutPage())
  }
}
