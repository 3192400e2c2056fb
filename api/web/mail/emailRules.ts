import { ask, at } from '../kit/ask.ts'
import { choice, field, openDialog } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { list } from '../kit/list/list.ts'
import type { ShownList } from '../kit/list/pages.ts'
import type { EmailRule, Project } from '../kit/types.ts'
import { badge, button, type Column, empty, section, toast } from '../kit/ui.ts'

/** Maps each scope of an email rule to the words that the console shows. */
const SCOPES: readonly (readonly [EmailRule['scope'], string])[] = [
  ['RECEIVE', 'mail from them'],
  ['SEND', 'mail to them'],
  ['REPLY', 'replies to them'],
]

/** Shows the email rules of a project. */
export function emailRules(project: Project, signal: AbortSignal): HTMLElement {
  const path = at`/projects/${project.projectId}/v0/email-rules`
  const rules: ShownList = list<'rules', EmailRule>({
    label: 'Email rules',
    name: 'rules',
    signal,
    path: path,
    none: () =>
      empty(
        'No rules',
        'The inbox accepts mail from every address, and sends and replies to every address.',
      ),
    columns: columnsOf((rule) => removeRule(path, rule, rules.refresh)),
  })
  return section(
    'email-rules',
    'Email rules',
    {
      lead: 'A rule for an address overrides a rule for its domain. A scope with an allow rule refuses every address without a rule.',
      actions: button('Add rule', () => addRule(path, rules.refresh), {
        needs: 'owner',
        keep: 'add-rule',
      }),
    },
    rules.element,
  )
}

const columnsOf = (remove: (rule: EmailRule) => void): Column<EmailRule>[] => [
  { name: 'Who', kind: 'main', cell: ({ value }) => h('code', {}, value) },
  {
    name: 'Rule',
    cell: ({ type }) => badge(type === 'ALLOW' ? 'allowed' : 'blocked'),
  },
  {
    name: 'For',
    cell: ({ scope }) => SCOPES.find(([known]) => known === scope)?.[1] ?? scope,
  },
  { name: 'Added', cell: ({ createdAt }) => moment(createdAt) },
  {
    name: 'Action',
    kind: 'end',
    cell: (rule) =>
      button('Delete', () => remove(rule), {
        kind: 'danger',
        keep: `delete ${rule.id}`,
        label: `Delete the rule for ${rule.value}`,
        needs: 'owner',
      }),
  },
]

const addRule = (path: string, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Add email rule',
    action: 'Add rule',
    body: [
      choice('Rule', 'type', [
        ['BLOCK', 'Block'],
        ['ALLOW', 'Allow'],
      ]),
      choice('For', 'scope', SCOPES),
      field(
        'Who',
        'value',
        { required: true, maxlength: 256, placeholder: '*@example.com' },
        'One address, or *@ and a domain.',
      ),
    ],
    act: async (form) => {
      await ask(path, {
        method: 'POST',
        body: {
          type: form.get('type'),
          scope: form.get('scope'),
          value: String(form.get('value') ?? '').trim(),
        },
      })
      toast('The rule is in effect')
      await refresh()
    },
  })

const removeRule = (path: string, rule: EmailRule, refresh: () => Promise<void>): void =>
  openDialog({
    title: 'Delete email rule',
    action: 'Delete rule',
    danger: true,
    body: h(
      'p',
      {},
      rule.type === 'ALLOW' ? 'The rule that allows ' : 'The rule that blocks ',
      h('code', {}, rule.value),
      ` for ${SCOPES.find(([scope]) => scope === rule.scope)?.[1] ?? rule.scope} ends at once.`,
    ),
    act: async () => {
      await ask(path + at`/${rule.id}`, { method: 'DELETE' })
      toast('The rule is deleted')
      await refresh()
    },
  })
