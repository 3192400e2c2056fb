import { ask, at } from '../kit/ask.ts'
import { openDialog, showOnce } from '../kit/dialog.ts'
import { type Child, h } from '../kit/dom.ts'
import { count, moment, usdc } from '../kit/format.ts'
import { type Filter, ORDER } from '../kit/list/filters.ts'
import { filteredList } from '../kit/list/list.ts'
import type { ShownList } from '../kit/list/pages.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { Endpoint, Project } from '../kit/types.ts'
import { badge, button, copyable, empty, notice, toast } from '../kit/ui.ts'
import { sellSomething } from './endpointTrial.ts'
import { failureRates } from './receivers.ts'
import { changeEndpoint, registerEndpoint } from './registerEndpoint.ts'

const REFRESH_MS = 5_000

const FILTERS: readonly Filter[] = [
  { kind: 'search', name: 'q', label: 'Search URL or description' },
  {
    kind: 'choice',
    name: 'verification',
    label: 'Check',
    options: [
      ['', 'any'],
      ['verified', 'verified'],
      ['pending', 'pending'],
      ['failed', 'failed'],
      ['unreachable', 'unreachable'],
    ],
  },
  {
    kind: 'choice',
    name: 'active',
    label: 'Sale',
    options: [
      ['', 'any'],
      ['true', 'on'],
      ['false', 'paused'],
    ],
  },
  ORDER,
]

/** Shows the endpoints of a seller's project with their revenue. */
export const endpoints = ofProject('endpoints', async (project, { signal, query }) => {
  const path = at`/projects/${project.projectId}/v0/sellers/endpoints`
  const rateOf = await failureRates(project, signal)
  const listed: ShownList = filteredList<'endpoints', Endpoint>({
    label: 'Endpoints',
    name: 'endpoints',
    signal,
    everyMs: REFRESH_MS,
    path,
    here: projectLink(project.projectId, 'endpoints'),
    query,
    filters: FILTERS,
    tools: [
      button('Sell something', () => sellSomething(project), {
        kind: 'primary',
        needs: 'owner',
        keep: 'sell',
      }),
      button('Register endpoint', () => registerEndpoint(project, () => listed.refresh()), {
        needs: 'owner',
        keep: 'register',
      }),
    ],
    none: () =>
      empty('Nothing for sale', [
        'The seller registers a URL with ',
        h('code', {}, 'PUT /v0/sellers/endpoints'),
        '.',
      ]),
    columns: [
      {
        name: 'URL',
        kind: 'main',
        cell: ({ urlPattern, description, active }) => [
          copyable(urlPattern),
          active ? null : [' ', badge('paused')],
          description === null ? null : h('p', { class: 'note' }, description),
        ],
      },
      { name: 'Price', kind: 'num', cell: ({ priceUsdc }) => `${priceUsdc} USDC` },
      { name: 'Sold', kind: 'num', cell: ({ callCount }) => count(callCount) },
      {
        name: 'Revenue',
        kind: 'num',
        cell: ({ revenueUsdcRaw }) => `${usdc(revenueUsdcRaw)} USDC`,
      },
      {
        name: 'Check',
        cell: ({ verification: { status, detail, checkedAt } }) => [
          badge(status),
          detail === null ? null : h('p', { class: 'note' }, detail),
          checkedAt === null ? null : h('p', { class: 'note' }, moment(checkedAt)),
        ],
      },
      { name: 'Webhook', cell: (one) => webhookOf(project, one, rateOf(one.endpointId)) },
      {
        name: 'Action',
        kind: 'end',
        cell: (one) => actions(project, path + at`/${one.endpointId}`, one, () => listed.refresh()),
      },
    ],
  })
  return [
    project.paymentsEnabled && project.payTo !== null
      ? null
      : notice(
          'wait',
          'Payments are off. ',
          h('a', { href: projectLink(project.projectId, 'settings') }, 'Settings'),
          ' turn them on.',
        ),
    listed.element,
  ]
})

function webhookOf(
  { projectId }: Project,
  { endpointId, webhookUrl }: Endpoint,
  rate: string | null,
): Child {
  if (webhookUrl === null) return 'none'
  const href = `${projectLink(projectId, 'webhooks')}?${new URLSearchParams({ receiver: endpointId })}`
  return [
    h('code', {}, webhookUrl),
    h('p', { class: 'note' }, h('a', { href }, rate ?? 'no delivery in 7 days')),
  ]
}

function actions(
  { projectId }: Project,
  path: string,
  one: Endpoint,
  refresh: () => Promise<void>,
): HTMLElement {
  const { endpointId, urlPattern, active, webhookUrl } = one
  const act = (label: string, work: () => void | Promise<void>, danger = false) =>
    button(label, work, {
      kind: danger ? 'danger' : 'plain',
      keep: `${label} ${endpointId}`,
      label: `${label} ${urlPattern}`,
      needs: 'owner',
    })
  const check = async () => {
    const { verification } = await ask<Endpoint>(`${path}/verify`, { method: 'POST' })
    toast(`Checked: ${verification.status}`)
    await refresh()
  }
  const pause = async () => {
    await ask(path, { method: 'PATCH', body: { active: !active } })
    toast(active ? 'Paused: it gets no new challenges' : 'It sells again')
    await refresh()
  }
  return h(
    'div',
    { class: 'actions many' },
    act('Change', () => changeEndpoint(path, one, refresh)),
    h(
      'a',
      {
        class: 'button',
        href: projectLink(projectId, 'endpoints', endpointId),
        'aria-label': `Try ${urlPattern}`,
        'data-keep': `Try ${endpointId}`,
      },
      'Try',
    ),
    act('Check', check),
    act(active ? 'Pause' : 'Resume', pause),
    webhookUrl === null ? null : act('Rotate secret', () => rotate(path, one), true),
    act('Delete', () => remove(path, one, refresh), true),
  )
}

const rotate = (path: string, { webhookUrl }: Endpoint): void =>
  openDialog({
    title: 'Rotate secret',
    action: 'Rotate secret',
    danger: true,
    body: h(
      'p',
      {},
      'Every delivery to ',
      h('code', {}, webhookUrl),
      ' is signed with a new secret.',
    ),
    act: async () => {
      const { webhookSecret } = await ask<{ webhookSecret: string }>(`${path}/rotate-secret`, {
        method: 'POST',
      })
      return () =>
        showOnce('New webhook secret', webhookSecret, 'The receiver checks signatures with it.')
    },
  })

const remove = (path: string, { urlPattern }: Endpoint, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Delete endpoint',
    action: 'Delete endpoint',
    danger: true,
    body: h(
      'p',
      {},
      h('code', {}, urlPattern),
      ' sells no more, and its webhook gets nothing more. Its payments stay.',
    ),
    act: async () => {
      await ask(path, { method: 'DELETE' })
      toast('The endpoint is deleted')
      await refresh()
    },
  })
