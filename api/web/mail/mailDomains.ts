import { ask, at } from '../kit/ask.ts'
import { confirmByTyping, field, openDialog } from '../kit/dialog.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { list } from '../kit/list/list.ts'
import type { ShownList } from '../kit/list/pages.ts'
import { readAll } from '../kit/live.ts'
import type { ScreenContext } from '../kit/screen.ts'
import type { MailDomain } from '../kit/types.ts'
import { badge, button, copyButton, empty, section, table, toast } from '../kit/ui.ts'

const PATH = '/v0/platform/domains'
const REFRESH_MS = 2_000
const DOMAIN_MAX_LENGTH = 253
/** Sets the maximum number of mail domains from which the user can choose for a new project. */
const DOMAINS_MAX = 10_000

/** Shows the mail domains of the platform with their required DNS records. */
export function mailDomains({
  signal,
  session,
}: Pick<ScreenContext, 'signal' | 'session'>): HTMLElement {
  const domains: ShownList = list<'domains', MailDomain>({
    label: 'Mail domains',
    name: 'domains',
    signal,
    everyMs: REFRESH_MS,
    path: PATH,
    none: () => empty('No domains of your own', ['All inboxes are at ', session.mailDomain, '.']),
    card: (domain) => card(domain, () => domains.refresh()),
  })
  return section(
    'mail-domains',
    'Mail domains',
    {
      lead: [
        'Inboxes can use a domain of your own in addition to ',
        h('code', {}, session.mailDomain),
        ' after its DNS has the required records.',
      ],
      actions: button('Add domain', () => addDomain(() => domains.refresh()), {
        keep: 'add-domain',
      }),
    },
    domains.element,
  )
}

/** Returns every mail domain except the service's own. */
export async function allMailDomains(): Promise<MailDomain[]> {
  const all = { name: 'domains', path: PATH } as const
  return (await readAll<'domains', MailDomain>(all, { most: DOMAINS_MAX })).items
}

function card(domain: MailDomain, refresh: () => Promise<void>): HTMLElement {
  const { domain: name, status, checkedAt } = domain
  return h(
    'section',
    { class: 'panel domain', 'aria-label': name },
    h(
      'header',
      {},
      h('h3', {}, h('bdi', {}, name)),
      badge(status),
      h(
        'p',
        { class: 'note' },
        checkedAt === null ? 'not checked yet' : ['checked ', moment(checkedAt)],
      ),
      h(
        'div',
        { class: 'actions' },
        button('Verify again', () => verify(name, refresh), {
          keep: `verify ${name}`,
          label: `Verify again: ${name}`,
        }),
        button('Delete', () => deleteDomain(name, refresh), {
          kind: 'danger',
          keep: `delete ${name}`,
          label: `Delete ${name}`,
        }),
      ),
    ),
    h(
      'details',
      { open: status !== 'verified', 'data-keep': `records ${name}` },
      h('summary', {}, 'DNS records'),
      records(domain),
    ),
  )
}

const records = ({ domain, records: list }: MailDomain): HTMLElement =>
  table(
    `DNS records of ${domain}`,
    [
      {
        name: 'Record',
        kind: 'main',
        cell: ({ purpose, required }) => [
          purpose,
          h('p', { class: 'note' }, required ? 'required' : 'recommended'),
        ],
      },
      { name: 'Type', cell: ({ type }) => type },
      { name: 'Name', cell: ({ purpose, name }) => copyable(name, `${domain} ${purpose} name`) },
      {
        name: 'Value',
        cell: ({ purpose, value, priority }) => [
          copyable(value, `${domain} ${purpose} value`),
          priority === null ? null : h('p', { class: 'note' }, `priority ${priority}`),
        ],
      },
      {
        name: 'Found',
        cell: ({ status, detail }) => [
          badge(status),
          status === 'ok' || detail === null ? null : h('p', { class: 'note' }, detail),
        ],
      },
    ],
    list,
  )

const copyable = (text: string, what: string): Child =>
  h(
    'div',
    { class: 'value' },
    h('code', {}, text),
    copyButton(text, 'Copy', { label: `Copy ${what}`, keep: `copy ${what}` }),
  )

const addDomain = (refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Add mail domain',
    action: 'Add domain',
    body: field(
      'Domain',
      'domain',
      { required: true, maxlength: DOMAIN_MAX_LENGTH, placeholder: 'agents.example.com' },
      'This service will receive its mail. If the domain has mailboxes elsewhere, use a subdomain.',
    ),
    act: async (form) => {
      await ask(PATH, { method: 'POST', body: { domain: String(form.get('domain') ?? '').trim() } })
      toast('Set the records in its DNS: the checks have started')
      await refresh()
    },
  })

async function verify(domain: string, refresh: () => Promise<void>): Promise<void> {
  await ask(PATH + at`/${domain}/verify`, { method: 'POST' })
  toast(`The DNS of ${domain} is being checked`)
  await refresh()
}

const deleteDomain = (domain: string, refresh: () => Promise<void>): void =>
  confirmByTyping({
    title: 'Delete mail domain',
    text: 'Its mail will be refused and its DKIM keys deleted. Adding it again needs new records. It must have no projects.',
    name: domain,
    action: 'Delete domain',
    act: async () => {
      await ask(PATH + at`/${domain}`, { method: 'DELETE' })
      toast(`${domain} is deleted`)
      await refresh()
    },
  })
