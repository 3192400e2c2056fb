import { EVENTS } from '../account/eventWebhooks.ts'
import { ask, at } from '../kit/ask.ts'
import { choice, field, openDialog } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { count, localMinute, moment, plural, zoneName } from '../kit/format.ts'
import { BULK_MAX, bulk } from '../kit/list/bulk.ts'
import { type Filter, type Given, ORDER, toQuery } from '../kit/list/filters.ts'
import { filteredList } from '../kit/list/list.ts'
import { live, readAll } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import { FieldError } from '../kit/trouble.ts'
import type { Delivery, DeliveryStats } from '../kit/types.ts'
import { badge, button, empty, toast } from '../kit/ui.ts'
import { type Receiver, rateOf, receiverQuery, receiversOf } from './receivers.ts'

const REFRESH_MS = 2_000
const STATS_MS = 10_000

const filtersOf = (receivers: readonly Receiver[]): readonly Filter[] => [
  { kind: 'search', name: 'q', label: 'Search URLs' },
  {
    kind: 'choice',
    name: 'status',
    label: 'State',
    options: [
      ['', 'any'],
      ['failed', 'failed'],
      ['pending', 'pending'],
      ['delivered', 'delivered'],
      ['aborted', 'aborted'],
      ['exhausted', 'exhausted'],
    ],
  },
  {
    kind: 'choice',
    name: 'event',
    label: 'Event',
    options: [['', 'any'], ...['payment.received', ...EVENTS.map(([event]) => event)].map(same)],
  },
  {
    kind: 'choice',
    name: 'receiver',
    label: 'Receiver',
    options: [['', 'any'], ...receivers.map(({ id, url }): [string, string] => [id, url])],
    toQuery: receiverQuery,
  },
  { kind: 'text', name: 'messageId', label: 'Message' },
  { kind: 'text', name: 'paymentId', label: 'Payment' },
  { kind: 'dates' },
  ORDER,
]

const same = (text: string): [string, string] => [text, text]

/**
 * Shows the webhook deliveries of a project, how many of these deliveries failed, and buttons that send deliveries
 * again.
 */
export const deliveries = ofProject('webhooks', async (project, { signal, query }) => {
  const { projectId } = project
  const path = at`/projects/${projectId}/v0/webhooks/deliveries`
  const receivers = await receiversOf(project, signal)
  const filters = filtersOf(receivers)
  let given: Given = {}
  const stats = live({
    signal,
    everyMs: STATS_MS,
    load: (watching) =>
      ask<DeliveryStats>(`${path}/stats?${wantedStats(toQuery(filters, given))}`, {
        watching,
        signal,
      }),
    draw: (found) => h('p', { class: 'note', role: 'status' }, saying(found)),
  })
  const after = async () => {
    await Promise.all([list.refresh(), stats.refresh()])
  }
  const replay = (ids: readonly string[]) => replayMany({ path, ids, after })
  const list = filteredList<'deliveries', Delivery>({
    label: 'Webhook deliveries',
    name: 'deliveries',
    signal,
    everyMs: REFRESH_MS,
    path,
    here: projectLink(projectId, 'webhooks'),
    query,
    filters,
    onGiven: (next) => {
      given = next
      void stats.refresh()
    },
    tools: button('Replay failed…', () => recover({ path, receivers, replay }), {
      needs: 'owner',
      keep: 'recover',
    }),
    choosing: {
      needs: 'owner',
      word: 'delivery',
      plural: 'deliveries',
      describe: ({ deliveryId, event }) => ({ id: deliveryId, name: `${event} ${deliveryId}` }),
      acts: [{ label: 'Replay', act: (chosen) => replay(chosen.map(({ id }) => id)) }],
    },
    none: () =>
      empty(
        'No deliveries yet',
        'Each settled payment of an endpoint with a webhook makes one, and so does each event of a webhook in the settings.',
      ),
    columns: [
      {
        name: 'Event',
        kind: 'main',
        cell: ({ deliveryId, event }) =>
          h(
            'a',
            { href: projectLink(projectId, 'webhooks', deliveryId), 'data-keep': deliveryId },
            event,
          ),
      },
      {
        name: 'State',
        cell: ({ status, error }) => [
          badge(status),
          error === null ? null : h('p', { class: 'note' }, error),
        ],
      },
      { name: 'Attempts', kind: 'num', cell: ({ attemptCount }) => count(attemptCount) },
      { name: 'To', cell: ({ url }) => h('code', {}, url) },
      {
        name: 'Next',
        cell: ({ nextAttemptAt }) => (nextAttemptAt === null ? '–' : moment(nextAttemptAt)),
      },
      { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
    ],
  })
  return [stats.element, list.element]
})

/** Leaves the parameter `order` out of the request for the counts, because the order of a list changes no count. */
const wantedStats = ({ order: _, ...query }: Record<string, string>) => new URLSearchParams(query)

const saying = (found: DeliveryStats): string =>
  found.total === 0
    ? 'No delivery matches.'
    : `${found.complete ? '' : 'Of the newest '}${found.total === 1 ? '1 delivery' : `${count(found.total)} deliveries`}: ${rateOf(found)}, ${count(found.pending)} pending.`

type Replaying = { path: string; ids: readonly string[]; after: () => Promise<void> }

const replayMany = ({ path, ids, after }: Replaying): void =>
  bulk({
    title: 'Replay deliveries',
    text: `${deliveriesOf(ids.length)} go out again: the same bodies, signed with the current secrets.`,
    action: 'Replay',
    ids,
    act: (id) => ask(path + at`/${id}/replay`, { method: 'POST' }),
    done: (number) => `${deliveriesOf(number)} sent again`,
    after,
  })

const deliveriesOf = (number: number): string => plural(number, 'delivery', 'deliveries')

const DAY_MS = 24 * 60 * 60 * 1000

type Recovering = {
  path: string
  receivers: readonly Receiver[]
  replay: (ids: readonly string[]) => void
}

/**
 * Opens a form for the time after an outage of a webhook receiver. The form sends all deliveries again that have failed
 * since a given time.
 */
const recover = ({ path, receivers, replay }: Recovering): void =>
  openDialog({
    title: 'Replay failed deliveries',
    action: 'Count them',
    body: [
      field(
        'Created since',
        'since',
        {
          type: 'datetime-local',
          required: true,
          value: localMinute(new Date(Date.now() - DAY_MS)),
        },
        `In ${zoneName()}.`,
      ),
      choice('Receiver', 'receiver', [
        ['', 'all'],
        ...receivers.map(({ id, url }) => [id, url] as const),
      ]),
    ],
    act: async (form) => {
      const since = new Date(String(form.get('since')))
      if (Number.isNaN(since.getTime())) throw new FieldError('since', 'Give a day and a time')
      const receiver = String(form.get('receiver'))
      const query = {
        status: 'failed',
        after: since.toISOString(),
        ...(receiver === '' ? {} : receiverQuery(receiver)),
      }
      const list = { name: 'deliveries' as const, path, query }
      const { items, more } = await readAll<'deliveries', Delivery>(list, { most: BULK_MAX })
      if (items.length === 0) throw new FieldError('since', 'No delivery has failed since then')
      if (more) toast(`These are the newest ${count(BULK_MAX)}: replay the others after them`)
      return () => replay(items.map(({ deliveryId }) => deliveryId))
    },
  })
