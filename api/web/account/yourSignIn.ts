/**
 * Shows the account of a person: the name, the passkeys, the company account, the sessions, and the ways to sign in.
 */
import { ask, at, changesOf } from '../kit/ask.ts'
import { field, openDialog } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { type LiveList, live } from '../kit/live.ts'
import type { Screen } from '../kit/screen.ts'
import type { Session } from '../kit/types.ts'
import { button, empty, facts, heading, panel, section, table, toast } from '../kit/ui.ts'
import { goToCompany } from './companyCalls.ts'
import { canUsePasskeys, createPasskey } from './passkeyCalls.ts'
import type { ListedSession, Passkey, SignInWays } from './types.ts'

const METHODS = {
  link: 'a printed link',
  mail: 'a link by mail',
  passkey: 'a passkey',
  company: 'the company account',
} as const

export const yourSignIn: Screen = async ({ signal, session }) => {
  const ways = await ask<SignInWays>('/sign-in-ways', { signal })
  const { person } = session
  return [
    heading('Your sign-in', 'Who you are here, and how you prove it.'),
    panel(
      'You',
      facts([
        ['Name', person.name],
        ['E-mail address', person.email ?? 'none yet: without one no link can be mailed to you'],
        ['Role', person.role],
      ]),
      h(
        'div',
        { class: 'actions' },
        button('Change', () => changeYourself(session)),
      ),
    ),
    passkeys(ways, signal),
    ways.company === null ? null : await companyAccount(ways.company, signal),
    sessions(signal),
  ]
}

const changeYourself = ({ person }: Session): void =>
  openDialog({
    title: 'Change your name',
    action: 'Save',
    body: [
      field('Name', 'name', { required: true, maxlength: 100, value: person.name }),
      person.email === null
        ? field(
            'E-mail address',
            'email',
            { type: 'email', maxlength: 320 },
            'Outside of this service: agents read the mail of its domains. Later an operator changes it.',
          )
        : null,
    ],
    act: async (form) => {
      const email = String(form.get('email') ?? '').trim() || person.email
      const body = changesOf(person, { name: form.get('name'), email })
      await ask('/person', { method: 'PATCH', body })
      location.reload()
    },
  })

function passkeys(ways: SignInWays, signal: AbortSignal): HTMLElement {
  const isUsable = ways.passkeys && canUsePasskeys()
  const list: LiveList = live({
    signal,
    load: () => ask<{ passkeys: Passkey[] }>('/passkeys', { signal }),
    draw: ({ passkeys: found }) =>
      found.length === 0
        ? empty('No passkey', 'A passkey signs you in with your finger, face or PIN.')
        : table(
            'Passkeys',
            [
              { name: 'Name', kind: 'main', cell: ({ name }) => name },
              { name: 'Added', cell: ({ createdAt }) => moment(createdAt) },
              { name: 'Last use', cell: ({ usedAt }) => (usedAt === null ? '–' : moment(usedAt)) },
              {
                name: 'Action',
                kind: 'end',
                cell: (passkey) =>
                  button('Remove', () => removePasskey(passkey, () => list.refresh()), {
                    kind: 'danger',
                    keep: `remove ${passkey.passkeyId}`,
                    label: `Remove ${passkey.name}`,
                  }),
              },
            ],
            found,
          ),
  })
  return section(
    'passkeys',
    'Passkeys',
    {
      lead: ways.passkeys
        ? 'Nobody can copy one, and it works at this address alone.'
        : 'This service is reached by a number. Passkeys need a name: set BASE_URL to one.',
      actions: isUsable
        ? button('Add passkey', () => addPasskey(() => list.refresh()), { keep: 'add-passkey' })
        : null,
    },
    list.element,
  )
}

const addPasskey = (refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Add passkey',
    action: 'Continue',
    body: field('Name', 'name', { required: true, maxlength: 100 }, 'Such as “laptop”.'),
    act: async (form) => {
      await createPasskey(String(form.get('name') ?? ''))
      toast('The passkey is added')
      await refresh()
    },
  })

const removePasskey = (passkey: Passkey, refresh: () => Promise<void>): void =>
  openDialog({
    title: `Remove ${passkey.name}?`,
    action: 'Remove',
    danger: true,
    body: h('p', {}, 'It signs nobody in from now on.'),
    act: async () => {
      await ask(at`/passkeys/${passkey.passkeyId}`, { method: 'DELETE' })
      await refresh()
    },
  })

async function companyAccount(company: string, signal: AbortSignal): Promise<HTMLElement> {
  const { issuer } = await ask<{ issuer: string | null }>('/company-account', { signal })
  return panel(
    'Company account',
    h(
      'p',
      {},
      issuer === null
        ? `Connect your account at ${company} to sign in with it.`
        : `Your account at ${issuer} signs you in.`,
    ),
    h(
      'div',
      { class: 'actions' },
      issuer === null
        ? button('Connect', () => goToCompany(true))
        : button('Disconnect', async () => {
            await ask('/company-account', { method: 'DELETE' })
            location.reload()
          }),
    ),
  )
}

function sessions(signal: AbortSignal): HTMLElement {
  const list: LiveList = live({
    signal,
    load: () => ask<{ sessions: ListedSession[] }>('/sessions', { signal }),
    draw: ({ sessions: found }) =>
      table(
        'Sessions',
        [
          {
            name: 'Person',
            kind: 'main',
            cell: ({ name, email, isThis }) => [
              email ?? name,
              isThis ? h('p', { class: 'note' }, 'this session') : null,
            ],
          },
          { name: 'Signed in with', cell: ({ method }) => METHODS[method] },
          { name: 'Browser', cell: ({ agent }) => h('p', { class: 'note' }, agent ?? '–') },
          { name: 'Last seen', cell: ({ lastSeenAt }) => moment(lastSeenAt) },
          { name: 'Ends', cell: ({ expiresAt }) => moment(expiresAt) },
          {
            name: 'Action',
            kind: 'end',
            cell: ({ sessionId, isThis, email, name }) =>
              isThis
                ? null
                : button('End', () => endSession(sessionId, () => list.refresh()), {
                    keep: `end ${sessionId}`,
                    label: `End the session of ${email ?? name}`,
                  }),
          },
        ],
        found,
      ),
  })
  const everywhere = async () => {
    await ask('/sessions', { method: 'DELETE' })
    location.replace('/console')
  }
  return section(
    'sessions',
    'Sessions',
    {
      lead: 'A session ends after two hours without use, and after twelve hours at the latest.',
      actions: button('Sign out everywhere', everywhere, { kind: 'danger' }),
    },
    list.element,
  )
}

async function endSession(sessionId: string, refresh: () => Promise<void>): Promise<void> {
  await ask(at`/sessions/${sessionId}`, { method: 'DELETE' })
  toast('The session is ended')
  await refresh()
}
