import { ask, at } from '../../kit/ask.ts'
import { type Child, h } from '../../kit/dom.ts'
import { moment } from '../../kit/format.ts'
import type { Filter } from '../../kit/list/filters.ts'
import { filteredList } from '../../kit/list/list.ts'
import type { ShownList } from '../../kit/list/pages.ts'
import { ofProject, projectLink } from '../../kit/screen.ts'
import { badge, button, copyButton, empty, facts, notice } from '../../kit/ui.ts'
import type { Credential } from './credential.ts'
import { BOUND_FIELDS, protectCredential, READERS } from './protectCredential.ts'
import { storeCredential } from './storeCredential.ts'

/** Shows the credentials of a project. When a person reveals a secret, the audit log records this access. */
export const vault = ofProject('vault', (project, { signal, query }) => {
  const credentials: ShownList = filteredList<'credentials', Credential>({
    label: 'Credentials',
    name: 'credentials',
    signal,
    path: at`/projects/${project.projectId}/v0/vault`,
    here: projectLink(project.projectId, 'vault'),
    query,
    filters: FILTERS,
    tools: button('Store credential', () => storeCredential(project, () => credentials.refresh()), {
      keep: 'store',
    }),
    none: () =>
      empty('The vault is empty', [
        'The agent stores a secret with ',
        h('code', {}, 'PUT /v0/vault/{name}'),
        '.',
      ]),
    card: (credential) => card(project.projectId, credential, () => credentials.refresh()),
  })
  return [
    notice(
      'info',
      'Revealing a secret is written to the activity of this project, with your session.',
    ),
    credentials.element,
  ]
})

const TYPES = [
  ...['LOGIN', 'API_KEY', 'OAUTH', 'TOTP', 'SSH_KEY', 'DATABASE', 'SMTP', 'AWS'],
  ...['CERTIFICATE', 'CARD', 'SHIPPING_ADDRESS', 'CUSTOM'],
]
const FILTERS: readonly Filter[] = [
  { kind: 'search', name: 'q', label: 'Search names' },
  {
    kind: 'choice',
    name: 'type',
    label: 'Type',
    options: [['', 'any'], ...TYPES.map((type): [string, string] => [type, type])],
  },
  {
    kind: 'choice',
    name: 'expiringWithin',
    label: 'Expires',
    options: [
      ['', 'any time'],
      ['1d', 'within a day'],
      ['7d', 'within a week'],
      ['30d', 'within 30 days'],
    ],
  },
]

function card(
  projectId: string,
  credential: Credential,
  refresh: () => Promise<void>,
): HTMLElement {
  const { name, type, metadata, expiresAt, reveal: reader } = credential
  const expired = expiresAt !== null && Date.parse(expiresAt) <= Date.now()
  const secret = h('div', { class: 'revealed' })
  const reveal = async () => {
    const { data } = await ask<{ data: Record<string, unknown> }>(
      at`/projects/${projectId}/v0/vault/-?name=${name}`,
    )
    secret.replaceChildren(
      facts(Object.entries(data).map(([field, value]) => [field, secretValue(value)])),
      button('Hide', () => {
        secret.replaceChildren()
        show.focus()
      }),
    )
  }
  const show = button('Reveal', reveal, { keep: `reveal ${name}` })
  const protect = button('Protect', () => protectCredential(projectId, credential, refresh), {
    keep: `protect ${name}`,
  })
  return h(
    'section',
    { class: 'panel credential', 'aria-label': name },
    h(
      'header',
      {},
      h('h2', {}, h('bdi', {}, name)),
      h('span', { class: 'badge' }, type),
      expired ? badge('expired') : null,
      h('div', { class: 'actions' }, protect, show),
    ),
    facts([
      ...Object.entries(metadata).map(([key, value]): [string, Child] => [key, display(value)]),
      ['Read by', READERS[reader]],
      ...BOUND_FIELDS.map(({ bound, label }): [string, Child] => [
        label,
        credential[bound].join(' ') || 'none',
      ]),
      ['Version', credential.version],
      ['Expires', expiresAt === null ? 'never' : moment(expiresAt)],
      ['Last used', credential.lastUsedAt === null ? 'never' : moment(credential.lastUsedAt)],
      [
        'Last rotated',
        credential.lastRotatedAt === null ? 'never' : moment(credential.lastRotatedAt),
      ],
    ]),
    secret,
  )
}

const display = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

const secretValue = (value: unknown): Child => [
  h('code', { class: 'secret' }, display(value)),
  ' ',
  copyButton(display(value)),
]
