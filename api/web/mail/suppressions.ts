import { ask, at } from '../kit/ask.ts'
import { openDialog } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { list } from '../kit/list/list.ts'
import type { ShownList } from '../kit/list/pages.ts'
import type { Project, Suppression } from '../kit/types.ts'
import { button, type Column, copyable, empty, section, toast } from '../kit/ui.ts'

const REASONS: Record<Suppression['reason'], string> = {
  bounce: 'mail came back',
  rejection: 'refused by its host',
  complaint: 'reported as spam',
}

/** Shows the suppressed addresses of a project. */
export function suppressions(project: Project, signal: AbortSignal): HTMLElement {
  const path = at`/projects/${project.projectId}/v0/suppressions`
  const found: ShownList = list<'suppressions', Suppression>({
    label: 'Suppressed addresses',
    name: 'suppressions',
    signal,
    path: path,
    none: () =>
      empty('No suppressed addresses', 'An address appears here after a permanent bounce.'),
    columns: columnsOf((one) => remove(path, one, found.refresh)),
  })
  return section(
    'suppressions',
    'Suppressed addresses',
    {
      lead: 'No mail is sent to these addresses. They bounced permanently, or their server reported an unknown mailbox.',
      actions: null,
    },
    found.element,
  )
}

const columnsOf = (removeOne: (one: Suppression) => void): Column<Suppression>[] => [
  { name: 'Address', kind: 'main', cell: ({ address }) => copyable(address) },
  {
    name: 'Why',
    cell: ({ reason, detail }) => [
      REASONS[reason],
      detail === null ? null : h('p', { class: 'note', dir: 'auto' }, detail),
    ],
  },
  { name: 'Since', cell: ({ createdAt }) => moment(createdAt) },
  {
    name: 'Action',
    kind: 'end',
    cell: (one) =>
      button('Remove', () => removeOne(one), {
        keep: `remove ${one.address}`,
        label: `Remove ${one.address}`,
        needs: 'owner',
      }),
  },
]

const remove = (path: string, { address }: Suppression, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Send mail there again',
    action: 'Remove',
    body: h(
      'p',
      {},
      'Mail goes to ',
      h('code', {}, address),
      ' again. Another bounce suppresses it again and harms the reputation of your mail domain.',
    ),
    act: async () => {
      await ask(path + at`/${address}`, { method: 'DELETE' })
      toast(`Mail goes to ${address} again`)
      await refresh()
    },
  })
