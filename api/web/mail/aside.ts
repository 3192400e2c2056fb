/**
 * Shows a column with facts about a message beside the message. The column shows the files with their text, the codes,
 * links and invitations, and the webhook deliveries.
 */
import { ask, at } from '../kit/ask.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { projectLink } from '../kit/screen.ts'
import type { Delivery, Message, Project } from '../kit/types.ts'
import { badge, button } from '../kit/ui.ts'
import { showFound } from './found.ts'
import { mayInvite, showInvites } from './invites.ts'
import { attachmentList } from './writing/attachmentList.ts'

/**
 * Sets the maximum number of webhook deliveries that the console shows beside a message. The delivery log shows all
 * webhook deliveries.
 */
const EVENTS_SHOWN = 20

/**
 * Makes the column that stands beside a message and shows facts about the message.
 * @param places holds the sections of the column that the user has opened. They stay open when the console redraws the
 * thread.
 */
export function aside(
  project: Project,
  message: Message,
  { base, places }: { base: string; places: Map<string, HTMLElement> },
): HTMLElement {
  const { messageId, deliveryStatus } = message
  const placeOf = (name: string): HTMLElement => {
    const place = places.get(`${name} ${messageId}`) ?? h('div', { class: 'aside-part' })
    places.set(`${name} ${messageId}`, place)
    return place
  }
  const found = placeOf('found')
  const events = placeOf('events')
  const invites = placeOf('invites')
  // The column beside a message is a group and no ARIA landmark, because each message of a thread has such a column.
  return h(
    'div',
    { class: 'aside', role: 'group', 'aria-label': 'Beside the message' },
    attachmentList(base, message, places),
    // A one-time code is a secret, and the audit log records who reads it. Therefore the console shows the codes only
    // when the user asks for them.
    deliveryStatus === undefined
      ? button('Codes and links', () => toggle(found, () => showFound(found, base)), {
          keep: `found ${messageId}`,
          needs: 'owner',
        })
      : null,
    found,
    mayInvite(message)
      ? button('Invitation', () => toggle(invites, () => showInvites(invites, base)), {
          keep: `invites ${messageId}`,
        })
      : null,
    invites,
    button('Events', () => toggle(events, () => showEvents(events, project, message)), {
      keep: `events ${messageId}`,
    }),
    events,
  )
}

async function toggle(place: HTMLElement, show: () => Promise<void>): Promise<void> {
  if (place.childElementCount > 0) return place.replaceChildren()
  await show()
}

/** Shows the webhook deliveries that the events of the message caused. */
async function showEvents(
  place: HTMLElement,
  { projectId }: Project,
  { messageId }: Message,
): Promise<void> {
  const query = new URLSearchParams({ messageId, limit: String(EVENTS_SHOWN), order: 'oldest' })
  const { deliveries, nextPageToken } = await ask<{
    deliveries: Delivery[]
    nextPageToken?: string
  }>(`${at`/projects/${projectId}/v0/webhooks/deliveries`}?${query}`)
  const all = `${projectLink(projectId, 'webhooks')}?${new URLSearchParams({ messageId })}`
  place.replaceChildren(
    h('h3', {}, 'Events'),
    deliveries.length === 0
      ? h('p', { class: 'note' }, 'No webhook heard of this message.')
      : h(
          'ul',
          { class: 'found-list', 'aria-label': 'Events' },
          deliveries.map((one) => eventItem(projectId, one)),
        ),
    ...(nextPageToken === undefined ? [] : [h('p', {}, h('a', { href: all }, 'All events'))]),
  )
}

const eventItem = (
  projectId: string,
  { deliveryId, event, status, url, createdAt }: Delivery,
): Child =>
  h(
    'li',
    {},
    h('a', { href: projectLink(projectId, 'webhooks', deliveryId) }, event),
    ' ',
    badge(status),
    h('p', { class: 'note' }, url, ', ', moment(createdAt)),
  )
