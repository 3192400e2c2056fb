import { ask } from '../kit/ask.ts'
import { type Child, h } from '../kit/dom.ts'
import type { Invite, Message, SingleMessage } from '../kit/types.ts'
import { badge, button, facts, toast } from '../kit/ui.ts'

/** Tells whether a message may hold a calendar invitation, according to the types and names of its files. */
export const mayInvite = ({ attachments }: Message): boolean =>
  attachments.some(
    ({ filename, contentType }) => /^text\/calendar/i.test(contentType) || /\.ics$/i.test(filename),
  )

/** Shows the calendar invitations in a message, with buttons to answer the invitations. */
export async function showInvites(place: HTMLElement, path: string): Promise<void> {
  const { invites = [] } = await ask<SingleMessage>(path)
  place.replaceChildren(
    h('h3', {}, 'Invitation'),
    ...(invites.length === 0
      ? [h('p', { class: 'note' }, 'No event was found, or the file is still being read.')]
      : invites.map((invite) => inviteCard(invite, () => showInvites(place, path), path))),
  )
}

const ANSWERS = [
  ['accepted', 'Accept'],
  ['tentative', 'Accept tentatively'],
  ['declined', 'Decline'],
] as const

/** Explains each unusual state of a calendar invitation. An invitation in its usual state needs no explanation. */
const NOTES: Readonly<Record<string, string>> = {
  outdated: 'A later message changed this event.',
  cancelled: 'The event is cancelled.',
  proposal: 'Its sender is not proven to be the organizer. The calendar is unchanged.',
}

function inviteCard(invite: Invite, refresh: () => Promise<void>, path: string): HTMLElement {
  const { uid, method, state, answer, summary, start, end, recurrence, location, organizer } =
    invite
  const answerable = method === 'REQUEST' && state === 'current' && organizer !== null
  return h(
    'div',
    { class: 'invite', role: 'group', 'aria-label': summary === '' ? 'Event' : summary },
    h('p', {}, h('bdi', {}, summary === '' ? '(without a title)' : summary), ' ', badge(state)),
    NOTES[state] === undefined ? null : h('p', { class: 'note' }, NOTES[state]),
    facts([
      ['From', timeText(start)],
      ['Until', timeText(end)],
      recurrence === null ? null : ['Recurs', recurrence.rule],
      location === null ? null : ['Place', h('bdi', {}, location)],
      organizer === null ? null : ['Organizer', organizer.address],
      ['Attendees', attendeesText(invite)],
      ['Answer', answer],
    ]),
    answerable
      ? h(
          'div',
          { class: 'actions' },
          ANSWERS.map(([value, label]) =>
            button(
              label,
              async () => {
                await ask(`${path}/rsvp`, { method: 'POST', body: { answer: value, uid } })
                toast('The answer is on its way.')
                await refresh()
              },
              { needs: 'owner', keep: `rsvp ${value} ${uid}` },
            ),
          ),
        )
      : null,
  )
}

const timeText = ({ local, zone }: Invite['start']): string =>
  `${local.replace('T', ' ')}${zone === null ? '' : ` ${zone}`}`

const SHOWN = 10

function attendeesText({ attendees }: Invite): Child {
  const shown = attendees.slice(0, SHOWN).map(({ address, state }) => `${address} (${state})`)
  const more = attendees.length - shown.length
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ')
}
