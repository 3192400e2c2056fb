import { ask, at } from '../kit/ask.ts'
import { checks, field, openDialog, showOnce } from '../kit/dialog.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { list } from '../kit/list/list.ts'
import type { ShownList } from '../kit/list/pages.ts'
import { projectLink } from '../kit/screen.ts'
import { FieldError } from '../kit/trouble.ts'
import type { EventWebhook, Project } from '../kit/types.ts'
import { button, type Column, empty, section, toast } from '../kit/ui.ts'
import { failureRates } from '../till/receivers.ts'

/**
 * Lists all events for which a person can register a webhook. If the form lacked an event that the webhook already
 * receives, saving the form would remove it.
 */
export const EVENTS: readonly (readonly [string, string])[] = [
  ['message.received', 'mail has come in'],
  ['message.code', 'mail with a one-time code has come in'],
  ['message.invite', 'mail with an invitation, a change or an answer was read'],
  ['attachment.read', 'the text of an attachment can be read, or never will be'],
  ['message.held', 'mail waits for an approval'],
  ['message.rejected', 'the owner has rejected mail, or nobody decided in time'],
  ['message.sent', 'mail was handed over'],
  ['message.failed', 'mail could not be sent'],
  ['message.bounced', 'mail came back'],
  ['message.complained', 'a recipient reported mail as spam'],
  ['payment.settled', 'a payment has settled'],
  ['payment.failed', 'a payment has failed'],
  ['payment.refunded', 'a refund is on the chain'],
  ['purse.paid', 'the chain shows a payment of the purse'],
  ['purse.refunded', 'a seller of this service has paid back'],
  ['purse.refused', 'a purchase was refused, and nothing was signed'],
  ['purse.asked', 'a payment waits for its owner'],
  ['purse.warned', 'a mandate has used 80 or 95 % of a bound'],
  ['purse.low', 'the purse has little left'],
  ['vault.used', 'a secret was used'],
]
const URL_MAX_LENGTH = 2_000

/** Shows the webhooks for the events of a project. */
export function eventWebhooks(project: Project, signal: AbortSignal): HTMLElement {
  const path = at`/projects/${project.projectId}/v0/webhooks`
  // If the project has no webhooks, no code awaits this promise of the failure rates. Therefore its error must be
  // caught here, because it would otherwise be an unhandled rejection.
  const rates = failureRates(project, signal).catch(() => () => null)
  const webhooks: ShownList = list<'webhooks', EventWebhook>({
    label: 'Webhooks for events',
    name: 'webhooks',
    signal,
    path: path,
    none: () => empty('No webhooks', 'Register a URL to receive events of mail and payments.'),
    columns: columnsOf({ project, rates }, (one) => [
      button('Change', () => change(path, one, webhooks.refresh), {
        keep: `change ${one.webhookId}`,
        label: `Change the webhook to ${one.url}`,
        needs: 'owner',
      }),
      button('Rotate secret', () => rotate(path, one), {
        kind: 'danger',
        keep: `rotate ${one.webhookId}`,
        label: `Rotate secret of the webhook to ${one.url}`,
        needs: 'owner',
      }),
      button('Delete', () => remove(path, one, webhooks.refresh), {
        kind: 'danger',
        keep: `delete ${one.webhookId}`,
        label: `Delete the webhook to ${one.url}`,
        needs: 'owner',
      }),
    ]),
  })
  return section(
    'event-webhooks',
    'Webhooks for events',
    {
      lead: [
        'Each receives signed events. Their deliveries are listed under ',
        h('a', { href: projectLink(project.projectId, 'webhooks') }, 'Webhooks'),
        '.',
      ],
      actions: button('Register webhook', () => register(path, webhooks.refresh), {
        needs: 'owner',
        keep: 'register-webhook',
      }),
    },
    webhooks.element,
  )
}

/** Shows how many deliveries of a webhook failed, as a link to the list of these deliveries. */
function rateOf({ project, rates }: Rated, { webhookId }: EventWebhook): HTMLElement {
  const href = `${projectLink(project.projectId, 'webhooks')}?${new URLSearchParams({ receiver: webhookId })}`
  const link = h('a', { href, 'data-keep': `rate ${webhookId}` }, 'Deliveries')
  void rates.then((of) => {
    link.textContent = of(webhookId) ?? 'No delivery in 7 days'
  })
  return link
}

type Rated = { project: Project; rates: Promise<(id: string) => string | null> }

const columnsOf = (rated: Rated, actions: (one: EventWebhook) => Child): Column<EventWebhook>[] => [
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
  { name: 'Deliveries', cell: (one) => rateOf(rated, one) },
  { name: 'Registered', cell: ({ createdAt }) => moment(createdAt) },
  {
    name: 'Action',
    kind: 'end',
    cell: (one) => h('div', { class: 'actions' }, actions(one)),
  },
]

/** Makes the form fields of a webhook. */
const fields = ({ url, events }: Partial<EventWebhook>, help: Child = null): Child => [
  field(
    'URL',
    'url',
    {
      type: 'url',
      required: true,
      maxlength: URL_MAX_LENGTH,
      placeholder: 'https://example.com/hooks',
      value: url,
    },
    help,
  ),
  checks(
    'Events',
    'events',
    EVENTS.map(([event, meaning]) => [event, [h('code', {}, event), ` ${meaning}`]]),
    events ?? ['message.received'],
  ),
]

function read(form: FormData): Pick<EventWebhook, 'url' | 'events'> {
  const events = form.getAll('events').map(String)
  if (events.length === 0) throw new FieldError('events', 'Choose at least one event')
  return { url: String(form.get('url') ?? '').trim(), events }
}

const showSecret = (title: string, secret: string): void =>
  showOnce(title, secret, 'The receiver checks signatures with it. It is shown this once.')

const register = (path: string, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Register webhook',
    action: 'Register',
    body: fields({}),
    act: async (form) => {
      const { secret } = await ask<{ secret: string }>(path, { method: 'POST', body: read(form) })
      await refresh()
      return () => showSecret('Webhook secret', secret)
    },
  })

const change = (path: string, one: EventWebhook, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Change webhook',
    action: 'Save',
    body: fields(one, 'Pending deliveries keep their URL.'),
    act: async (form) => {
      const { url, events } = read(form)
      // The form sends only changed fields, because the agent may have changed other fields since the form opened.
      const body = {
        ...(url === one.url ? {} : { url }),
        ...(events.toSorted().join() === one.events.toSorted().join() ? {} : { events }),
      }
      await ask(path + at`/${one.webhookId}`, { method: 'PATCH', body })
      toast('Saved')
      // The console page refreshes the list only after the dialog has closed, so that the focus returns to the button
      // that opened the dialog.
      return refresh
    },
  })

const rotate = (path: string, { webhookId, url }: EventWebhook): void =>
  openDialog({
    title: 'Rotate secret',
    action: 'Rotate secret',
    danger: true,
    body: h(
      'p',
      {},
      'From now on every delivery to ',
      h('code', {}, url),
      ' is signed with a new secret. The receiver must have it to verify the signatures.',
    ),
    act: async () => {
      const { secret } = await ask<{ secret: string }>(path + at`/${webhookId}/rotate-secret`, {
        method: 'POST',
      })
      return () => showSecret('New webhook secret', secret)
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
    body: h(
      'p',
      {},
      h('code', {}, url),
      ' receives no more events; its pending deliveries are aborted.',
    ),
    act: async () => {
      await ask(path + at`/${webhookId}`, { method: 'DELETE' })
      toast('The webhook is deleted')
      await refresh()
    },
  })
