import { ask, at, changesOf } from '../kit/ask.ts'
import { check, confirmByTyping, field, openDialog, showOnce } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { bytes, moment } from '../kit/format.ts'
import { ofProject } from '../kit/screen.ts'
import { FieldError } from '../kit/trouble.ts'
import type { Project } from '../kit/types.ts'
import { badge, button, copyButton, facts, panel, toast } from '../kit/ui.ts'
import { emailRules } from '../mail/emailRules.ts'
import { suppressions } from '../mail/suppressions.ts'
import { eventWebhooks } from './eventWebhooks.ts'
import { SCOPES, scopeChoice } from './projects.ts'
import { retention } from './retention.ts'
import { sendPolicy } from './sendPolicy.ts'

/** Shows the name, the scopes, the API key and the payment settings of a project. */
export const projectSettings = ofProject('settings', (project, { signal }) => [
  panel(
    'Project',
    facts([
      ['Identifier', [h('code', {}, project.projectId), ' ', copyButton(project.projectId)]],
      ['Inbox', h('code', {}, project.emailAddress)],
      ['Purpose', project.purpose.toLowerCase()],
      ['Storage', storage(project)],
      ['Created', moment(project.createdAt)],
    ]),
    h(
      'div',
      { class: 'actions' },
      button('Rename', () => rename(project), { needs: 'owner' }),
      button('Change storage', () => changeStorage(project), { needs: 'operator' }),
    ),
  ),
  panel(
    'Key',
    facts([
      ['Key', h('code', {}, `${project.apiKeyPrefix}…`)],
      [
        'Scopes',
        project.scopes.length === 0
          ? 'none'
          : h(
              'span',
              { class: 'tags' },
              project.scopes.map((scope) => h('code', {}, scope)),
            ),
      ],
    ]),
    h(
      'div',
      { class: 'actions' },
      button('Change scopes', () => changeScopes(project), { needs: 'owner' }),
      button('Rotate key', () => rotate(project), { needs: 'owner', kind: 'danger' }),
    ),
  ),
  panel(
    'Payments',
    facts([
      ['Acceptance', badge(project.paymentsEnabled ? 'enabled' : 'off')],
      ['Paid to', project.payTo === null ? 'nowhere yet' : h('code', {}, project.payTo)],
      ['Payments today', ofLimit(project.usage.dailySettlements, project.limits.dailySettlements)],
      ['Gas today', ofLimit(project.usage.dailyGas, project.limits.dailyGas)],
      ['Gas of the purse today', ofLimit(project.usage.dailyPurseGas, project.limits.dailyGas)],
      [
        'Bytes of attachments read today',
        ofLimit(project.usage.dailyTextBytes, project.limits.dailyTextBytes),
      ],
      [
        'Seconds for attachments today',
        ofLimit(project.usage.dailyTextSeconds, project.limits.dailyTextSeconds),
      ],
    ]),
    h(
      'div',
      { class: 'actions' },
      button('Change payments', () => changePayments(project), { needs: 'owner' }),
      button('Change daily limits', () => changeDailyLimits(project), { needs: 'operator' }),
    ),
  ),
  sendPolicy(project, (body, done) => change(project, body, done)),
  retention(project, (body, done) => change(project, body, done)),
  emailRules(project, signal),
  suppressions(project, signal),
  eventWebhooks(project, signal),
  panel(
    'Delete',
    h(
      'p',
      {},
      'The key stops working at once; mail, vault and endpoints are removed. Settled payments and their receipts are kept. The address is never reused.',
    ),
    h(
      'div',
      { class: 'actions' },
      button('Delete project', () => remove(project), { needs: 'operator', kind: 'danger' }),
    ),
  ),
])

const path = ({ projectId }: Project) => at`/v0/platform/projects/${projectId}`

/** Draws the settings screen again after a person has changed the settings. */
const shownAnew = () => dispatchEvent(new HashChangeEvent('hashchange'))

async function change(project: Project, body: object, done: string): Promise<void> {
  await ask(path(project), { method: 'PATCH', body })
  toast(done)
  shownAnew()
}

const storage = ({ usage, limits }: Project): string =>
  limits.storageBytes === null
    ? `${bytes(usage.storageBytes)}, no limit`
    : `${bytes(usage.storageBytes)} of ${bytes(limits.storageBytes)}`

const MB = 1024 * 1024

const changeStorage = (project: Project): void => {
  const { storageBytes: present } = project.limits
  const shown = present === null ? '' : String(Math.ceil(present / MB))
  openDialog({
    title: 'Change storage',
    action: 'Save',
    body: field(
      'Megabytes of mail',
      'megabytes',
      {
        type: 'number',
        min: 0,
        max: 1_000_000_000,
        value: shown,
      },
      "A full inbox takes no mail and sends none. Empty: the service's limit.",
    ),
    act: async (form) => {
      const text = String(form.get('megabytes') ?? '').trim()
      // The form sends only a changed text, because an unchanged text may be rounded, or may be the default of the
      // service.
      if (text === shown) return
      const storageBytes = text === '' ? null : Number(text) * MB
      await change(project, { limits: { storageBytes } }, 'Storage changed')
    },
  })
}

const ofLimit = (used: number, limit: number | null): string =>
  limit === null
    ? `${used.toLocaleString('en')}, no limit`
    : `${used.toLocaleString('en')} of ${limit.toLocaleString('en')}`

const changeDailyLimits = (project: Project): void => {
  const limitField = (
    label: string,
    name: 'dailySettlements' | 'dailyGas' | 'dailyTextBytes' | 'dailyTextSeconds',
    hint: string,
  ) =>
    field(
      label,
      name,
      { type: 'number', min: 0, max: 2 ** 50, value: project.limits[name] ?? '' },
      hint,
    )
  openDialog({
    title: 'Change daily limits',
    action: 'Save',
    body: [
      limitField(
        'Payments a day',
        'dailySettlements',
        "Beyond it no payment is claimed until the next UTC day. Empty: the service's limit.",
      ),
      limitField(
        'Gas a day',
        'dailyGas',
        "Counted by the chain's receipts. Empty: the service's limit.",
      ),
      limitField(
        'Bytes of attachments read a day',
        'dailyTextBytes',
        "Beyond it attachments wait for the next UTC day. Empty: the service's limit.",
      ),
      limitField(
        'Processor seconds for attachments a day',
        'dailyTextSeconds',
        "Reading a file takes a second at most, as a rule. Empty: the service's limit.",
      ),
    ],
    act: (form) => {
      const given = (name: string) => {
        const text = String(form.get(name) ?? '').trim()
        return text === '' ? null : Number(text)
      }
      const limits = {
        dailySettlements: given('dailySettlements'),
        dailyGas: given('dailyGas'),
        dailyTextBytes: given('dailyTextBytes'),
        dailyTextSeconds: given('dailyTextSeconds'),
      }
      return change(project, { limits: changesOf(project.limits, limits) }, 'Daily limits changed')
    },
  })
}

const rename = (project: Project): void =>
  openDialog({
    title: 'Rename project',
    action: 'Rename',
    body: field('Name', 'name', { required: true, maxlength: 200, value: project.name }),
    act: (form) => change(project, { name: form.get('name') }, 'Renamed'),
  })

const changeScopes = (project: Project): void =>
  openDialog({
    title: 'Change scopes',
    action: 'Change scopes',
    body: scopeChoice(project.scopes),
    act: (form) => {
      const chosen = form.getAll('scopes').map(String)
      const addScopes = chosen.filter((scope) => !project.scopes.includes(scope))
      const removeScopes = SCOPES.map(([scope]) => scope).filter(
        (scope) => project.scopes.includes(scope) && !chosen.includes(scope),
      )
      return change(project, { addScopes, removeScopes }, 'Scopes changed')
    },
  })

const changePayments = (project: Project): void =>
  openDialog({
    title: 'Change payments',
    action: 'Save',
    body: [
      field(
        'Paid to',
        'payTo',
        { value: project.payTo ?? '', pattern: '0x[0-9a-fA-F]{40}', placeholder: '0x…' },
        'The address that receives the USDC. Check it twice: a transfer cannot be taken back.',
      ),
      check('Accept payments', 'enabled', 'yes', project.paymentsEnabled),
    ],
    act: (form) => {
      const payTo = String(form.get('payTo') ?? '').trim()
      const paymentsEnabled = form.get('enabled') === 'yes'
      if (paymentsEnabled && payTo === '') {
        throw new FieldError('payTo', 'Enter the address that receives the payments')
      }
      const given = { payTo: payTo === '' ? null : payTo, paymentsEnabled }
      return change(project, changesOf(project, given), 'Saved')
    },
  })

const rotate = (project: Project): void =>
  confirmByTyping({
    title: 'Rotate key',
    text: 'The present key stops working at once, wherever it is in use.',
    name: project.name,
    action: 'Rotate key',
    act: async () => {
      const { rawKey } = await ask<{ rawKey: string }>(`${path(project)}/rotate-key`, {
        method: 'POST',
      })
      shownAnew()
      return () =>
        showOnce('New project key', rawKey, 'Hand it to the agent. It is shown this once.')
    },
  })

const remove = (project: Project): void =>
  confirmByTyping({
    title: 'Delete project',
    text: `${project.emailAddress} and everything in it will be gone. This cannot be undone.`,
    name: project.name,
    action: 'Delete permanently',
    act: async () => {
      await ask(path(project), { method: 'DELETE' })
      toast(`${project.name} is deleted`)
      location.hash = '#/projects'
    },
  })
