/** Shows operators the people who sign in to the console. */
import { ask, at, changesOf } from '../kit/ask.ts'
import { checks, choice, confirmByTyping, field, openDialog } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { count, moment } from '../kit/format.ts'
import { type LiveList, live, readAll } from '../kit/live.ts'
import type { Screen } from '../kit/screen.ts'
import type { Project, Role } from '../kit/types.ts'
import { badge, button, heading, table, toast } from '../kit/ui.ts'
import type { Person } from './types.ts'

const ROLES: readonly (readonly [Role, string])[] = [
  ['owner', 'Owner: decides for the projects below'],
  ['viewer', 'Viewer: reads the projects below, without secrets'],
  ['operator', 'Operator: everything, for every project'],
]

export const people: Screen = ({ signal, session }) => {
  const list: LiveList = live({
    signal,
    load: () => ask<{ people: Person[] }>('/people', { signal }),
    draw: ({ people: found }) =>
      table(
        'People',
        [
          {
            name: 'Name',
            kind: 'main',
            cell: ({ name, email }) => [name, h('p', { class: 'note' }, email ?? 'no address')],
          },
          { name: 'Role', cell: ({ role }) => badge(role) },
          {
            name: 'Projects',
            cell: ({ role, projectIds }) => (role === 'operator' ? 'all' : `${projectIds.length}`),
          },
          { name: 'Passkeys', cell: ({ passkeys }) => `${passkeys}` },
          {
            name: 'Last sign-in',
            cell: ({ signedInAt }) => (signedInAt === null ? 'never' : moment(signedInAt)),
          },
          {
            name: 'Action',
            kind: 'end',
            cell: (person) =>
              h(
                'div',
                { class: 'actions' },
                button('Change', () => changePerson(person, () => list.refresh()), {
                  keep: `change ${person.personId}`,
                  label: `Change ${person.name}`,
                }),
                person.isFirst || person.personId === session.person.personId
                  ? null
                  : button('Remove', () => removePerson(person, () => list.refresh()), {
                      kind: 'danger',
                      keep: `remove ${person.personId}`,
                      label: `Remove ${person.name}`,
                    }),
              ),
          },
        ],
        found,
      ),
  })
  return [
    heading(
      'People',
      'Whoever signs in here. Tell a new person to open this page and to enter their address.',
      button('Add person', () => addPerson(() => list.refresh()), {
        kind: 'primary',
        keep: 'add-person',
      }),
    ),
    list.element,
  ]
}

/** Sets the maximum number of projects that the form for a person can show. */
const PROJECTS_MAX = 10_000

/**
 * Makes the fields of the form for a person. The list `hidden` holds those projects of the person that the form does not
 * show, because there are too many projects.
 */
async function personForm(person: Person | null) {
  const path = '/v0/platform/projects'
  const { items, more } = await readAll<'projects', Project>(
    { name: 'projects', path },
    { most: PROJECTS_MAX },
  )
  const role = person?.role ?? 'owner'
  const roles = [
    ...ROLES.filter(([name]) => name === role),
    ...ROLES.filter(([name]) => name !== role),
  ]
  const shown = new Set(items.map(({ projectId }) => projectId))
  const hidden = more ? (person?.projectIds.filter((id) => !shown.has(id)) ?? []) : []
  const body = [
    field('Name', 'name', { required: true, maxlength: 100, value: person?.name ?? '' }),
    field(
      'E-mail address',
      'email',
      {
        type: 'email',
        required: person?.isFirst !== true,
        maxlength: 320,
        value: person?.email ?? '',
      },
      'Outside of this service: agents read the mail of its domains.',
    ),
    choice('Role', 'role', roles),
    checks(
      'Projects of an owner or a viewer',
      'projectIds',
      items.map(({ projectId, name, emailAddress }) => [projectId, `${name} (${emailAddress})`]),
      person?.projectIds ?? [],
    ),
    more
      ? h('p', { class: 'help' }, `The newest ${count(PROJECTS_MAX)} projects are shown.`)
      : null,
  ]
  return { body, hidden }
}

const readForm = (form: FormData, hidden: readonly string[] = []) => {
  const role = String(form.get('role'))
  const email = String(form.get('email') ?? '').trim()
  return {
    name: form.get('name'),
    ...(email === '' ? {} : { email }),
    role,
    projectIds:
      role === 'operator' ? [] : [...form.getAll('projectIds').map(String), ...hidden].toSorted(),
  }
}

async function addPerson(refresh: () => Promise<void>): Promise<void> {
  const { body } = await personForm(null)
  openDialog({
    title: 'Add person',
    action: 'Add person',
    body,
    act: async (form) => {
      await ask('/people', { method: 'POST', body: readForm(form) })
      toast('The person is added')
      await refresh()
    },
  })
}

async function changePerson(person: Person, refresh: () => Promise<void>): Promise<void> {
  const { body, hidden } = await personForm(person)
  openDialog({
    title: `Change ${person.name}`,
    action: 'Save',
    body,
    act: async (form) => {
      const shown = { ...person, projectIds: person.projectIds.toSorted() }
      const changes = changesOf(shown, { email: person.email, ...readForm(form, hidden) })
      await ask(at`/people/${person.personId}`, { method: 'PATCH', body: changes })
      await refresh()
    },
  })
}

const removePerson = (person: Person, refresh: () => Promise<void>): void =>
  confirmByTyping({
    title: `Remove ${person.name}`,
    text: 'Their sessions, passkeys and connected apps end at once.',
    name: person.name,
    action: 'Remove',
    act: async () => {
      await ask(at`/people/${person.personId}`, { method: 'DELETE' })
      await refresh()
    },
  })
