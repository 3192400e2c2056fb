import { ask, at, changesOf } from '../kit/ask.ts'
import { field, openDialog, textArea } from '../kit/dialog.ts'
import type { Project } from '../kit/types.ts'
import { toast } from '../kit/ui.ts'
import type { Mandate } from './types.ts'

const amount = (label: string, name: string, value: string | null, help: string) =>
  field(label, name, { inputmode: 'decimal', maxlength: 20, value: value ?? '' }, help)

/**
 * Opens the form in which the owner edits a mandate (a spending limit of a project). @param mandate is the mandate to
 * change. Null means that the form creates a new one.
 */
export const mandateDialog = (
  project: Project,
  mandate: Mandate | null,
  refresh: () => Promise<void>,
): void =>
  openDialog({
    title: mandate === null ? 'Give a mandate' : `Change ${mandate.name}`,
    action: mandate === null ? 'Give' : 'Save',
    body: [
      field('Name', 'name', { required: true, maxlength: 100, value: mandate?.name ?? '' }),
      field(
        'Hosts',
        'hosts',
        { maxlength: 2_000, value: mandate?.hosts.join(' ') ?? '' },
        'Such as api.example.com, or *.example.com for all below it. Blanks stand between them.',
      ),
      field(
        'Single URLs',
        'resources',
        { maxlength: 4_000, value: mandate?.resources.join(' ') ?? '' },
        'Without a query. Only these URLs, where a whole host is too much. Blanks stand between them.',
      ),
      amount(
        'Most for one payment, in USDC',
        'maxPerPayment',
        mandate?.maxPerPayment ?? null,
        'A dearer request is refused.',
      ),
      amount(
        'Most in an hour',
        'maxPerHour',
        mandate?.maxPerHour ?? null,
        'From minute 0 to minute 59, UTC. Empty: no such bound.',
      ),
      amount(
        'Most in a day',
        'maxPerDay',
        mandate?.maxPerDay ?? null,
        'A day of UTC. One of these four sums must be there.',
      ),
      amount('Most in a month', 'maxPerMonth', mandate?.maxPerMonth ?? null, 'A month of UTC.'),
      amount(
        'Most in all',
        'maxTotal',
        mandate?.maxTotal ?? null,
        'What is refunded or spent is not given back.',
      ),
      amount(
        'Ask me above',
        'askAbove',
        mandate?.askAbove ?? null,
        'A dearer payment waits for you under Purse. Empty: none does.',
      ),
      field(
        'Payments a minute',
        'paymentsPerMinute',
        { type: 'number', min: 1, max: 10_000, value: mandate?.paymentsPerMinute ?? 60 },
        'It stops an agent that buys in a loop.',
      ),
      field(
        'Ask me where a price rose by more than, in percent',
        'risePercent',
        { type: 'number', min: 0, max: 10_000, value: mandate?.risePercent ?? 20 },
        'Measured from the lowest price of the last 30 days.',
      ),
      textArea(
        'Payees',
        'payees',
        { rows: 2, maxlength: 2_400 },
        mandate?.payees?.join('\n') ?? '',
      ),
    ],
    act: async (form) => {
      const text = (name: string) => String(form.get(name) ?? '').trim()
      const list = (name: string, between = /[\s,]+/) =>
        text(name)
          .split(between)
          .filter((word) => word !== '')
      const bound = (name: string) => (text(name) === '' ? null : text(name))
      const payees = list('payees')
      const body = {
        name: text('name'),
        hosts: list('hosts'),
        // A URL may have a comma, so only blanks stand between URLs.
        resources: list('resources', /\s+/),
        payees: payees.length === 0 ? null : payees,
        maxPerPayment: text('maxPerPayment'),
        maxPerHour: bound('maxPerHour'),
        maxPerDay: bound('maxPerDay'),
        maxPerMonth: bound('maxPerMonth'),
        maxTotal: bound('maxTotal'),
        askAbove: bound('askAbove'),
        paymentsPerMinute: Number(text('paymentsPerMinute')),
        risePercent: Number(text('risePercent')),
      }
      const path = at`/v0/platform/projects/${project.projectId}/mandates`
      if (mandate === null) await ask(path, { method: 'POST', body })
      else {
        const changes = changesOf(mandate, body)
        await ask(`${path}/${mandate.mandateId}`, { method: 'PATCH', body: changes })
      }
      await refresh()
      return () => toast(mandate === null ? 'The mandate is given' : 'Saved')
    },
  })
