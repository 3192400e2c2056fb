import { ask, at } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { live } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { WholeDelivery } from '../kit/types.ts'
import { badge, button, copyable, empty, facts, panel, table, toast } from '../kit/ui.ts'

const REFRESH_MS = 1_000

/** Shows one webhook delivery with its attempts, and a button that sends the delivery again. */
export const delivery = ofProject('webhooks', (project, { params, signal }) => {
  const path = at`/projects/${project.projectId}/v0/webhooks/deliveries/${params[1]!}`
  const shown = live({
    signal,
    everyMs: REFRESH_MS,
    load: (watching) => ask<WholeDelivery>(path, { watching, signal }),
    draw: (whole) => [summary(project.projectId, whole, replay), attempts(whole)],
  })
  const replay = async () => {
    await ask(`${path}/replay`, { method: 'POST' })
    toast('Sent again: the same body, signed with the current secret')
    await shown.refresh()
  }
  return [
    h('a', { class: 'back', href: projectLink(project.projectId, 'webhooks') }, '← Webhooks'),
    shown.element,
  ]
})

const summary = (
  projectId: string,
  whole: WholeDelivery,
  replay: () => Promise<void>,
): HTMLElement =>
  panel(
    whole.event,
    facts([
      ['State', badge(whole.status)],
      whole.error === null ? null : ['Given up', whole.error],
      ['To', copyable(whole.url)],
      whole.nextAttemptAt === null ? null : ['Next attempt', moment(whole.nextAttemptAt)],
      ['Identifier', copyable(whole.deliveryId)],
      ['Idempotency key', copyable(whole.idempotencyKey)],
      whole.paymentId === null
        ? null
        : [
            'Payment',
            h(
              'a',
              { href: projectLink(projectId, 'payments', whole.paymentId), 'data-keep': 'payment' },
              whole.paymentId,
            ),
          ],
      ['Created', moment(whole.createdAt)],
    ]),
    h(
      'div',
      { class: 'actions' },
      button('Replay', replay, { needs: 'owner', kind: 'primary', keep: 'replay' }),
    ),
  )

const attempts = (whole: WholeDelivery): HTMLElement =>
  whole.attempts.length === 0
    ? empty('No attempt yet', 'The first is made at once when a worker is free.')
    : table(
        'Attempts',
        [
          { name: 'Attempt', kind: 'main', cell: ({ number }) => `Attempt ${number}` },
          {
            name: 'Answer',
            cell: ({ status, error }) =>
              status === null
                ? (error ?? 'none')
                : [badge(status >= 200 && status < 300 ? 'ok' : 'failed'), ` ${status}`],
          },
          { name: 'Took', kind: 'num', cell: ({ ms }) => `${ms} ms` },
          {
            name: 'Body of the answer',
            cell: ({ response }) =>
              response === null || response === '' ? '–' : h('code', {}, response),
          },
          { name: 'When', cell: ({ at: when }) => moment(when) },
        ],
        whole.attempts.toReversed(),
      )
