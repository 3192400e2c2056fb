import { at } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { count, moment, usdc } from '../kit/format.ts'
import { liveList } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { Delivery, Endpoint } from '../kit/types.ts'
import { badge, button, empty, notice, table } from '../kit/ui.ts'
import { registerEndpoint } from './registerEndpoint.ts'

const REFRESH_MS = 1_000

/** The endpoints of a project, with their revenue. */
export const endpoints = ofProject('endpoints', (project, { signal }) => {
  const listed = liveList<'endpoints', Endpoint>({
    name: 'endpoints',
    signal,
    everyMs: 5 * REFRESH_MS,
    path: at`/projects/${project.projectId}/v0/sellers/endpoints`,
    none: () =>
      empty('Nothing for sale', [
        'The seller registers a URL with ',
        h('code', {}, 'PUT /v0/sellers/endpoints'),
        '.',
      ]),
    draw: (items) =>
      table(
        'Endpoints',
        [
          {
            name: 'URL',
            kind: 'main',
            cell: ({ urlPattern, description }) => [
              h('code', {}, urlPattern),
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
            cell: ({ verification }) => [
              badge(verification.status),
              verification.detail === null ? null : h('p', { class: 'note' }, verification.detail),
            ],
          },
          {
            name: 'Webhook',
            cell: ({ webhookUrl }) => (webhookUrl === null ? 'none' : h('code', {}, webhookUrl)),
          },
        ],
        items,
      ),
  })
  const register = () => registerEndpoint(project, listed.refresh)
  return [
    project.paymentsEnabled && project.payTo !== null
      ? null
      : notice(
          'wait',
          'Payments are off. ',
          h('a', { href: projectLink(project.projectId, 'settings') }, 'Settings'),
          ' turn them on.',
        ),
    h(
      'div',
      { class: 'actions' },
      button('Register endpoint', register, { needs: 'owner', keep: 'register' }),
    ),
    listed.element,
  ]
})

/** The deliveries of a project. */
export const webhooks = ofProject(
  'webhooks',
  (project, { signal }) =>
    liveList<'deliveries', Delivery>({
      name: 'deliveries',
      signal,
      everyMs: REFRESH_MS,
      path: at`/projects/${project.projectId}/v0/webhooks/deliveries`,
      none: () =>
        empty(
          'No deliveries yet',
          'Each settled payment of an endpoint with a webhook makes one, and so does each event of a webhook in the settings.',
        ),
      draw: (items) =>
        table(
          'Webhook deliveries',
          [
            {
              name: 'Event',
              kind: 'main',
              cell: ({ deliveryId, event }) =>
                h(
                  'a',
                  {
                    href: projectLink(project.projectId, 'webhooks', deliveryId),
                    'data-keep': deliveryId,
                  },
                  event,
                ),
            },
            { name: 'State', cell: ({ status }) => badge(status) },
            { name: 'Attempts', kind: 'num', cell: ({ attemptCount }) => count(attemptCount) },
            { name: 'To', cell: ({ url }) => h('code', {}, url) },
            {
              name: 'Next',
              cell: ({ nextAttemptAt }) => (nextAttemptAt === null ? '–' : moment(nextAttemptAt)),
            },
            { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
          ],
          items,
        ),
    }).element,
)
