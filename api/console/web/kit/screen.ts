import { ask, at } from './ask.ts'
import { type Child, h } from './dom.ts'
import type { Project, Session } from './types.ts'
import { heading, tabs } from './ui.ts'

/** What a screen is given. */
export type ScreenContext = {
  params: string[]
  /** What stands behind a `?` in the address. */
  query: URLSearchParams
  session: Session
  /** Aborted when the screen is left. */
  signal: AbortSignal
}

/** Makes the content of a screen. */
export type Screen = (context: ScreenContext) => Child | Promise<Child>

const TABS: readonly [string, string][] = [
  ['inbox', 'Inbox'],
  ['outgoing', 'Outgoing'],
  ['vault', 'Vault'],
  ['endpoints', 'Endpoints'],
  ['payments', 'Payments'],
  ['webhooks', 'Webhooks'],
  ['activity', 'Activity'],
  ['settings', 'Settings'],
]

/** Where a project's screen is. */
export const projectLink = (projectId: string, ...rest: string[]): string =>
  `#/${['projects', projectId, ...rest].map(encodeURIComponent).join('/')}`

/** Makes the screen of one project: its name, its address, its parts, and below them the content. */
export const ofProject =
  (
    tab: string,
    content: (project: Project, context: ScreenContext) => Child | Promise<Child>,
  ): Screen =>
  async (context) => {
    const projectId = context.params[0]!
    const project = await ask<Project>(at`/v0/platform/projects/${projectId}`)
    return [
      h(
        'nav',
        { class: 'crumbs', 'aria-label': 'Breadcrumb' },
        h('a', { href: '#/projects' }, 'Projects'),
      ),
      heading(project.name, h('code', {}, project.emailAddress)),
      tabs(
        'Project',
        TABS.map(([name, label]) => ({
          href: projectLink(projectId, name),
          name: label,
          current: name === tab,
        })),
      ),
      await content(project, context),
    ]
  }
