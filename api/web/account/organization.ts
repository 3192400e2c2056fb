import { ask, at } from '../kit/ask.ts'
import { field, openDialog, showOnce } from '../kit/dialog.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { type Filter, ORDER } from '../kit/list/filters.ts'
import { filteredList } from '../kit/list/list.ts'
import { type LiveList, live } from '../kit/live.ts'
import { ofProject, projectLink, type Screen, type ScreenContext } from '../kit/screen.ts'
import type { LogEntry, PlatformKey } from '../kit/types.ts'
import { badge, button, empty, heading, section, table, toast } from '../kit/ui.ts'
import { mailDomains } from '../mail/mailDomains.ts'

/** Shows the settings of the organization: platform keys, mail domains and the audit log. */
export const organization: Screen = (context) => {
  const { signal, session } = context
  const keys: LiveList = live({
    signal,
    load: () => ask<{ keys: PlatformKey[] }>('/organization/keys', { signal }),
    draw: ({ keys: found }) => keyTable(found, () => keys.refresh()),
  })
  return [
    heading('Organization settings'),
    section(
      'keys',
      'Platform keys',
      {
        lead: 'A platform key manages projects over the API. It cannot read mail, secrets or payments.',
        actions: button('New platform key', () => createKey(() => keys.refresh()), {
          kind: 'primary',
        }),
      },
      keys.element,
    ),
    mailDomains({ signal, session }),
    h('h2', {}, 'What was done'),
    logList('/organization/logs', '#/organization', { ...context, parts: ORGANIZATION_PARTS }),
  ]
}

/** Shows the audit log of a project. */
export const activity = ofProject('activity', (project, context) =>
  logList(at`/projects/${project.projectId}/v0/logs`, projectLink(project.projectId, 'activity'), {
    ...context,
    parts: PROJECT_PARTS,
  }),
)

const PROJECT_PARTS = [
  ...['vault', 'message', 'thread', 'draft', 'approval', 'email_rule', 'suppression', 'webhook'],
  ...['endpoint', 'payment', 'refund', 'purse', 'mandate', 'project', 'oauth_grant'],
]
const ORGANIZATION_PARTS = [
  ...['session', 'person', 'passkey', 'company_account', 'platform_key', 'project'],
  ...['mail_domain', 'oauth_grant', 'job', 'health_report'],
]

const filtersOf = (parts: readonly string[]): readonly Filter[] => [
  { kind: 'search', name: 'q', label: 'Search action, subject or person' },
  {
    kind: 'choice',
    name: 'category',
    label: 'Part',
    options: [
      ['', 'any'],
      ...parts.map((part): [string, string] => [part, part.replace('_', ' ')]),
    ],
  },
  {
    kind: 'choice',
    name: 'outcome',
    label: 'Outcome',
    options: [
      ['', 'any'],
      ['ok', 'ok'],
      ['refused', 'refused'],
      ['not_found', 'not found'],
      ['expired', 'expired'],
      ['failed', 'failed'],
    ],
  },
  { kind: 'dates' },
  ORDER,
]

const logList = (
  path: string,
  here: string,
  { signal, query, parts }: ScreenContext & { parts: readonly string[] },
): Child =>
  filteredList<'logs', LogEntry>({
    label: 'What was done',
    name: 'logs',
    signal,
    path,
    here,
    query,
    filters: filtersOf(parts),
    none: () => empty('Nothing yet', 'This log records reads of secrets and changes.'),
    columns: [
      { name: 'Action', kind: 'main', cell: ({ action }) => h('code', {}, action) },
      {
        name: 'Subject',
        cell: ({ subject, description }) => [
          subject ?? '–',
          description === null ? null : h('p', { class: 'note' }, description),
        ],
      },
      {
        name: 'Outcome',
        cell: ({ outcome }) => badge(outcome === 'ok' ? 'ok' : outcome.replace('_', ' ')),
      },
      { name: 'By', cell: ({ actor }) => h('code', {}, actor) },
      { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
    ],
  }).element

const keyTable = (keys: PlatformKey[], refresh: () => Promise<void>): HTMLElement =>
  keys.length === 0
    ? empty('No platform keys', 'Create one to manage projects from a program.')
    : table(
        'Platform keys',
        [
          { name: 'Name', kind: 'main', cell: ({ name }) => name ?? 'First key' },
          { name: 'Key', cell: ({ prefix }) => h('code', {}, `${prefix}…`) },
          {
            name: 'State',
            cell: ({ revokedAt }) => badge(revokedAt === null ? 'live' : 'revoked'),
          },
          { name: 'Created', cell: ({ createdAt }) => moment(createdAt) },
          {
            name: 'Action',
            kind: 'end',
            cell: (key) =>
              key.revokedAt === null
                ? button('Revoke', () => revokeKey(key, refresh), {
                    kind: 'danger',
                    keep: `revoke ${key.keyId}`,
                  })
                : null,
          },
        ],
        keys,
      )

const createKey = (refresh: () => Promise<void>): void =>
  openDialog({
    title: 'New platform key',
    action: 'Create key',
    body: field(
      'Name',
      'name',
      { required: true, maxlength: 100 },
      'The purpose of the key, such as “deployment”.',
    ),
    act: async (form) => {
      const { rawKey } = await ask<{ rawKey: string }>('/organization/keys', {
        method: 'POST',
        body: { name: form.get('name') },
      })
      await refresh()
      return () =>
        showOnce(
          'Platform key',
          rawKey,
          'Store it now: it is shown only once, and the service keeps only its hash.',
        )
    },
  })

const revokeKey = (key: PlatformKey, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Revoke platform key',
    action: 'Revoke key',
    danger: true,
    body: h('p', {}, h('code', {}, `${key.prefix}…`), ' stops working at once, permanently.'),
    act: async () => {
      await ask(at`/organization/keys/${key.keyId}`, { method: 'DELETE' })
      toast('The key is revoked')
      await refresh()
    },
  })
