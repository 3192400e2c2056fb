/** Shows the apps that owners have connected by OAuth. */
import { ask, at } from '../kit/ask.ts'
import { openDialog } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { list } from '../kit/list/list.ts'
import type { ShownList } from '../kit/list/pages.ts'
import { projectLink, type Screen } from '../kit/screen.ts'
import { button, empty, heading } from '../kit/ui.ts'
import type { ConnectedApp } from './types.ts'

const nameOf = ({ clientName }: ConnectedApp) => (clientName === '' ? 'without a name' : clientName)

export const connectedApps: Screen = ({ signal, session }) => {
  const apps: ShownList = list<'grants', ConnectedApp>({
    label: 'Connected apps',
    name: 'grants',
    path: '/oauth/grants',
    signal,
    none: () =>
      empty(
        'No app is connected',
        `Add ${session.baseUrl}/mcp to an app that speaks MCP. It leads you to a page that asks for your consent.`,
      ),
    columns: [
      { name: 'App', kind: 'main', cell: nameOf },
      { name: 'Host', cell: (app) => app.clientHost ?? 'not verified' },
      { name: 'Sends back to', cell: (app) => app.redirectHost },
      {
        name: 'Acts as',
        cell: ({ projectId, inboxAddress }) =>
          h('a', { href: projectLink(projectId, 'inbox') }, inboxAddress),
      },
      {
        name: 'May',
        cell: ({ scopes, holdsMail }) => [
          h('code', {}, scopes.join(' ')),
          holdsMail ? '; its mail waits for approval' : null,
        ],
      },
      { name: 'Last use', cell: ({ usedAt }) => (usedAt === null ? '–' : moment(usedAt)) },
      { name: 'Until', cell: ({ expiresAt }) => moment(expiresAt) },
      {
        name: '',
        kind: 'end',
        cell: (app) =>
          button('Disconnect', () => disconnect(app, () => apps.refresh()), {
            label: `Disconnect ${nameOf(app)} from ${app.inboxAddress}`,
          }),
      },
    ],
  })
  return [
    heading('Connected apps', 'Apps that act as one of your projects, until you end it.'),
    apps.element,
  ]
}

const disconnect = (app: ConnectedApp, done: () => void) =>
  openDialog({
    title: `Disconnect ${nameOf(app)}?`,
    body: h('p', {}, `Its next call as ${app.inboxAddress} is refused.`),
    action: 'Disconnect',
    danger: true,
    act: async () => {
      await ask(at`/oauth/grants/${app.id}`, { method: 'DELETE' })
      return done
    },
  })
