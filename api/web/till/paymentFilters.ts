/** Makes the filters of the list of payments. The address of the page holds their values. */
import { choice, field } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { zoneName } from '../kit/format.ts'
import { dayStart } from '../kit/list/filters.ts'
import { projectLink } from '../kit/screen.ts'
import type { Endpoint } from '../kit/types.ts'
import { button } from '../kit/ui.ts'

const NAMES = [
  'status',
  'endpointId',
  'payer',
  'from',
  'to',
  'minAmountUsdc',
  'maxAmountUsdc',
] as const

export type PaymentFilters = Partial<Record<(typeof NAMES)[number], string>>

/** Reads the payment filters in the address of a console page, and ignores all other parameters. */
export function readFilters(query: URLSearchParams): PaymentFilters {
  const filters: PaymentFilters = {}
  for (const name of NAMES) {
    const value = query.get(name)?.trim()
    if (value) filters[name] = value
  }
  return filters
}

/**
 * Returns the request parameters for the payment filters. The two days are days in the person's time zone, and the
 * payments of the last day are included.
 */
export const toQuery = ({ from, to, ...same }: PaymentFilters): Record<string, string> => ({
  ...same,
  ...(from === undefined ? {} : { from: dayStart(from) ?? from }),
  ...(to === undefined ? {} : { to: dayStart(to, 1) ?? to }),
})

const STATES = [
  ['', 'any'],
  ['settled', 'settled'],
  ['verified', 'settling'],
  ['failed', 'failed'],
] as const

/** Makes the form of the payment filters. Submitting the form opens a console page with the filters in its address. */
export function filterForm(
  projectId: string,
  filters: PaymentFilters,
  endpoints: readonly Endpoint[],
): HTMLElement {
  const link = (chosen: Iterable<[string, string]>) => {
    const query = new URLSearchParams([...chosen]).toString()
    location.hash = `${projectLink(projectId, 'payments')}${query === '' ? '' : `?${query}`}`
  }
  const day = { type: 'date', title: `Days in ${zoneName()}` }
  const money = { inputmode: 'decimal', maxlength: 20 }
  const form = h(
    'form',
    {
      class: 'panel filters',
      'aria-label': 'Filter payments',
      on: {
        submit: (event) => {
          event.preventDefault()
          const given = [...new FormData(form)].map(([name, value]): [string, string] => [
            name,
            String(value).trim(),
          ])
          link(given.filter(([, value]) => value !== ''))
        },
      },
    },
    choice('State', 'status', STATES),
    choice('Endpoint', 'endpointId', [
      ['', 'any'],
      ...endpoints.map(({ endpointId, urlPattern }) => [endpointId, urlPattern] as const),
    ]),
    field('Payer', 'payer', {
      value: filters.payer ?? '',
      maxlength: 42,
      pattern: '0x[0-9a-fA-F]{40}',
    }),
    field('From', 'from', { ...day, value: filters.from ?? '' }),
    field('To', 'to', { ...day, value: filters.to ?? '' }),
    field('Least amount', 'minAmountUsdc', { ...money, value: filters.minAmountUsdc ?? '' }),
    field('Largest amount', 'maxAmountUsdc', { ...money, value: filters.maxAmountUsdc ?? '' }),
    h(
      'div',
      { class: 'actions' },
      h('button', { type: 'submit', class: 'button primary' }, 'Filter'),
      Object.keys(filters).length === 0 ? null : button('Clear filters', () => link([])),
    ),
  )
  for (const select of form.querySelectorAll('select')) {
    select.value = filters[select.name as keyof PaymentFilters] ?? ''
  }
  return form
}
