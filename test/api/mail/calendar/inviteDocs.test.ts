/** Tests how the API tells whether the invitation in a message is still current. */
import { expect, test } from 'bun:test'
import { toInvite } from '../../../../api/mail/calendar/inviteDocs.ts'

type Invite = Parameters<typeof toInvite>[0]
type State = NonNullable<Parameters<typeof toInvite>[1]>

const STAMP = '2031-01-01T00:00:00.000Z'
const invite = (changes: Partial<Invite> = {}) =>
  ({ method: 'REQUEST', effect: 'new', sequence: 1, stamp: STAMP, ...changes }) as Invite
const event = (changes: Partial<State> = {}): State =>
  ({
    ...{ sequence: 1, stamp: new Date(STAMP), status: 'confirmed', answer: 'accepted' as const },
    messageId: null,
    ...changes,
  }) as State

test.each<[name: string, invite: Partial<Invite>, event: State | null, state: string]>([
  ['of the same revision', {}, event(), 'current'],
  ['of a later revision', { sequence: 2 }, event(), 'current'],
  ['of an earlier revision', { sequence: 0 }, event(), 'outdated'],
  ['of an earlier time', {}, event({ stamp: new Date(Date.parse(STAMP) + 1) }), 'outdated'],
  ['without an event', {}, null, 'outdated'],
  ['of a cancelled event', {}, event({ status: 'cancelled' }), 'cancelled'],
  [
    'of an earlier revision of a cancelled event',
    { sequence: 0 },
    event({ status: 'cancelled' }),
    'outdated',
  ],
  ['that changed nothing', { effect: 'proposal' }, event(), 'proposal'],
  [
    'that changed nothing and is an answer',
    { effect: 'proposal', method: 'REPLY' },
    null,
    'proposal',
  ],
  ['that is an answer', { method: 'REPLY' }, null, 'answer'],
])(
  'the API shows whether an invitation %s is current or outdated',
  (_, changes, state, expected) => {
    expect(toInvite(invite(changes), state)).toEqual({
      ...invite(changes),
      state: expected as never,
      answer: state === null ? 'needs-action' : 'accepted',
    })
  },
)
