import { ask, at } from './ask.ts'
import { checks, field, openDialog, showOnce } from './dialog.ts'
import { h } from './dom.ts'
import { moment } from './format.ts'
import { type LiveList, liveList } from './live.ts'
import { projectLink } from './screen.ts'
import type { EventWebhook, Project } from './types.ts'
import { button, empty, section, table, toast } from './ui.ts'

const EVENTS: readonly (readonly [string, string])[] = [
  ['message.received', 'mail has come in'],
  ['message.sent', 'mail was handed over'],
  ['message.failed', 'mail could not be sent'],
  ['message.bounced', 'mail came back'],
  ['payment.settled', 'a payment has settled'],
  ['payment.failed', 'a payment has failed'],
]
const URL_MAX_LENGTH = 2_000

/** Where the events of a project are sent to. */
export function eventWebhooks(project: Project, signal: AbortSignal): HTMLElement {
  const path = at`/projects/${project.projectId}/v0/webhooks`
  const webhooks: LiveList = liveList<'webhooks', EventWebhook>({
    name: 'webhooks',
    signal,
    path: path,
    none: () => empty('No webhooks', 'Register a URL to be told of mail and payments.'),
    draw: (found) => webhookTable(found, (one) => remove(path, one, webhooks.refresh)),
  })
  return section(
    'event-webhooks',
    'Webhooks for events',
    {
      lead: [
        'Each is told what happens, with a signature. What was sent stands under ',
        h('a', { href: projectLink(project.projectId, 'webhooks') }, 'Webhooks'),
        '.',
      ],
      actions: button('Register webhook', () => register(path, webhooks.refresh), {
        keep: 'register-webhook',
      }),
    },
    webhooks.element,
  )
}

const webhookTable = (list: EventWebhook[], removeOne: (one: EventWebhook) => void): HTMLElement =>
  table(
    'Webhooks for events',
    [
      { name: 'URL', kind: 'main', cell: ({ url }) => h('code', {}, url) },
      {
        name: 'Events',
        cell: ({ events }) =>
          h(
            'span',
            { class: 'tags' },
            events.map((event) => h('code', {}, event)),
          ),
      },
      { name: 'Registered', cell: ({ createdAt }) => moment(createdAt) },
      {
        name: 'Action',
        kind: 'end',
        cell: (one) =>
          button('Delete', () => removeOne(one), {
            kind: 'danger',
            keep: `delete ${one.webhookId}`,
            label: `Delete the webhook to ${one.url}`,
          }),
      },
    ],
    list,
  )

const register = (path: string, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Register webhook',
    action: 'Register',
    body: [
      field('URL', 'url', {
        type: 'url',
        required: true,
        maxlength: URL_MAX_LENGTH,
        placeholder: 'https://example.com/hooks',
      }),
      checks(
        'Events',
        'events',
        EVENTS.map(([event, meaning]) => [event, [h('code', {}, event), ` ${meaning}`]]),
        ['message.received'],
      ),
    ],
    act: async (form) => {
      const events = form.getAll('events')
      if (events.length === 0) throw new Error('Choose at least one event')
      const { secret } = await ask<{ secret: string }>(path, {
        method: 'POST',
        body: { url: String(form.get('url') ?? '').trim(), events },
      })
      await refresh()
      return () =>
        showOnce(
          'Webhook secret',
          secret,
          'The receiver checks signatures with it. It is shown this once.',
        )
    },
  })

const remove = (
  path: string,
  { webhookId, url }: EventWebhook,
  refresh: () => Promise<void>,
): void =>
  openDialog({
    title: 'Delete webhook',
    action: 'Delete webhook',
    danger: true,
    body: h('p', {}, h('code', {}, url), ' is told nothing more; what is on its way is given up.'),
    act: async () => {
      await ask(path + at`/${webhookId}`, { method: 'DELETE' })
      toast('The webhook is gone')
      await refresh()
    },
  })
