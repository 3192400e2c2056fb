import { ask } from '../kit/ask.ts'
import { checks, choice, field, openDialog, showOnce } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { type Filter, ORDER } from '../kit/list/filters.ts'
import { filteredList } from '../kit/list/list.ts'
import { projectLink, type Screen } from '../kit/screen.ts'
import type { MailDomain, Project } from '../kit/types.ts'
import { badge, button, copyable, empty, heading } from '../kit/ui.ts'
import { allMailDomains } from '../mail/mailDomains.ts'

export const SCOPES: readonly [string, string][] = [
  ['mail:read', 'read mail'],
  ['mail:send', 'send and reply'],
  ['mail:manage', 'label and delete mail'],
  ['mail:codes', 'get the codes and links of mail'],
  ['vault:read', 'read secrets'],
  ['vault:write', 'store and delete secrets'],
  ['vault:use', 'use secrets without reading them'],
  ['payments:accept', 'sell and be paid'],
  ['purse:read', 'read the purse and ask for prices'],
  ['purse:pay', 'pay within your mandates'],
]

/**
 * Lists the scopes that the form for a new API key preselects. A new key gets a scope of the purse (the project's
 * wallet) only if the owner chooses it.
 */
const FIRST_SCOPES = SCOPES.map(([scope]) => scope).filter((scope) => !scope.startsWith('purse:'))

/** Makes the checkboxes for the scopes of a project's API key. */
export const scopeChoice = (chosen: readonly string[]): HTMLElement =>
  checks(
    'Scopes of its key',
    'scopes',
    SCOPES.map(([scope, meaning]) => [scope, [h('code', {}, scope), ` ${meaning}`]]),
    chosen,
  )

const FILTERS: readonly Filter[] = [
  { kind: 'search', name: 'q', label: 'Search name or address' },
  {
    kind: 'choice',
    name: 'payments',
    label: 'Payments',
    options: [
      ['', 'any'],
      ['on', 'on'],
      ['off', 'off'],
    ],
  },
  { kind: 'dates' },
  ORDER,
]

/** Shows the list of projects. */
export const projects: Screen = ({ signal, session, query }) => {
  const create = (label = 'New project') =>
    button(label, () => openCreate(session.mailDomain), {
      kind: 'primary',
      keep: 'create',
      needs: 'operator',
    })
  return [
    heading('Projects', 'A project is one agent with its inbox, vault and till.', create()),
    filteredList<'projects', Project>({
      label: 'Projects',
      name: 'projects',
      signal,
      path: '/v0/platform/projects',
      here: '#/projects',
      query,
      filters: FILTERS,
      none: () =>
        empty(
          'No projects yet',
          'A project gives an agent an address, a vault and a till.',
          create('Create the first'),
        ),
      columns: [
        {
          name: 'Name',
          kind: 'main',
          cell: ({ projectId, name }) =>
            h('a', { href: projectLink(projectId, 'inbox'), 'data-keep': projectId }, name),
        },
        { name: 'Inbox', cell: ({ emailAddress }) => copyable(emailAddress) },
        { name: 'Key', cell: ({ apiKeyPrefix }) => h('code', {}, `${apiKeyPrefix}…`) },
        {
          name: 'Payments',
          cell: ({ paymentsEnabled }) => badge(paymentsEnabled ? 'enabled' : 'off'),
        },
        { name: 'Created', cell: ({ createdAt }) => moment(createdAt) },
      ],
    }).element,
  ]
}

/** Tells why an inbox cannot use a mail domain. */
const UNUSABLE: Readonly<Record<string, string>> = {
  pending: 'not verified yet',
  failed: 'its verification has failed',
}

/**
 * Lists the service's own mail domain first, then the verified domains, and last the domains that an inbox cannot use,
 * each with the reason.
 */
function domainOptions(mailDomain: string, domains: readonly MailDomain[]) {
  const byName = domains.toSorted((one, other) => one.domain.localeCompare(other.domain))
  const verified = byName.filter(({ status }) => status === 'verified')
  const others = byName.filter(({ status }) => status !== 'verified')
  return [
    [mailDomain, `@${mailDomain}`],
    ...verified.map(({ domain }) => [domain, `@${domain}`] as const),
    ...others.map(
      ({ domain, status }) => [domain, `@${domain} – ${UNUSABLE[status] ?? status}`, true] as const,
    ),
  ] as const
}

async function openCreate(mailDomain: string): Promise<void> {
  const options = domainOptions(mailDomain, await allMailDomains())
  openDialog({
    title: 'New project',
    action: 'Create project',
    body: [
      field('Name', 'name', { required: true, maxlength: 200 }),
      field(
        'Inbox address',
        'emailName',
        { maxlength: 64, pattern: '[A-Za-z0-9]([A-Za-z0-9._\\-]{0,62}[A-Za-z0-9])?' },
        'The part before the @; empty: a random name. An address is never reused for another project.',
      ),
      choice(
        'Domain',
        'emailDomain',
        options,
        'Add domains of your own under Organization. A verified domain can be chosen here.',
      ),
      scopeChoice(FIRST_SCOPES),
    ],
    act: async (form) => {
      const emailName = String(form.get('emailName') ?? '')
      const created = await ask<Project & { rawKey: string }>('/v0/platform/projects', {
        method: 'POST',
        body: {
          name: form.get('name'),
          ...(emailName === '' ? {} : { emailName }),
          emailDomain: form.get('emailDomain'),
          scopes: form.getAll('scopes'),
        },
      })
      location.hash = projectLink(created.projectId, 'settings')
      return () =>
        showOnce('Project key', created.rawKey, 'Hand it to the agent. It is shown this once.')
    },
  })
}
