import { ask, at } from './ask.ts'
import { type Child, h } from './dom.ts'
import { may } from './role.ts'
import type { Project, Role, Session } from './types.ts'
import { copyable, heading, tabs } from './ui.ts'

/** Holds the data that the console passes to one of its screens. */
export type ScreenContext = {
  params: string[]
  /** Holds the query parameters of the console page's address. */
  query: URLSearchParams
  session: Session
  /** Holds a signal that aborts when the user leaves the screen. */
  signal: AbortSignal
}

/** Makes the content of one screen of the console. */
export type Screen = (context: ScreenContext) => Child | Promise<Child>

const TABS: readonly [path: string, name: string, role?: Role][] = [
  ['inbox', 'Inbox'],
  ['drafts', 'Drafts'],
  ['outgoing', 'Outgoing'],
  ['approvals', 'Approvals'],
  ['vault', 'Vault', 'owner'],
  ['endpoints', 'Endpoints'],
  ['payments', 'Payments'],
  ['purse', 'Purse'],
  ['webhooks', 'Webhooks'],
  ['activity', 'Activity'],
  ['settings', 'Settings'],
]

/** Returns the address of a project's screen. */
export const projectLink = (projectId: string, ...rest: string[]): string =>
  `#/${['projects', projectId, ...rest].map(encodeURIComponent).join('/')}`

/**
 * Makes a screen of one project. Above the content, the screen shows the project's name, the project's address and the
 * navigation.
 */
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
      heading(project.name, copyable(project.emailAddress)),
      tabs(
        'Project',
        TABS.filter(([, , role = 'viewer']) => may(role)).map(([name, label]) => ({
          href: projectLink(projectId, name),
          name: label,
          current: name === tab,
        })),
      ),
      await content(project, context),
    ]
  }
