import { type Child, h } from '../dom.ts'
import { zoneName } from '../format.ts'
import { button } from '../ui.ts'

/**
 * Describes a filter of a list. The name of the filter is also the name of a query parameter, in the address of the
 * page and in the request.
 */
export type Filter =
  | { kind: 'search'; name: string; label: string; maxLength?: number }
  | {
      kind: 'choice'
      name: string
      label: string
      /**
       * Lists the options of a filter with fixed values, as pairs of value and label. The first option is the default,
       * with the value ''.
       */
      options: readonly (readonly [value: string, label: string])[]
      /**
       * Returns the request parameters for a value of this filter. By default, the request has one parameter with the
       * filter's name and value.
       */
      toQuery?: (value: string) => Record<string, string>
    }
  /** Describes a filter for which the user types a whole text, such as an id. */
  | { kind: 'text'; name: string; label: string }
  /**
   * Describes a filter with a first day (`since`) and a last day (`until`) in the person's time zone. The request
   * contains them as the times `after` and `before`.
   */
  | { kind: 'dates' }

/** Holds the filter that sets the order of a list. */
export const ORDER: Filter = {
  kind: 'choice',
  name: 'order',
  label: 'Order',
  options: [
    ['', 'newest first'],
    ['oldest', 'oldest first'],
  ],
}

/**
 * Holds the values of a list's filters by name. It omits empty filters, and parameters in the console page's address
 * that name no filter.
 */
export type Given = Record<string, string>

const namesOf = (filter: Filter): string[] =>
  filter.kind === 'dates' ? ['since', 'until'] : [filter.name]

export const givenOf = (filters: readonly Filter[], query: URLSearchParams): Given =>
  Object.fromEntries(
    filters.flatMap(namesOf).flatMap((name) => {
      const value = query.get(name)?.trim() ?? ''
      return value === '' ? [] : [[name, value]]
    }),
  )

/**
 * Returns the first moment of a day in the person's time zone, shifted by `days` days. Returns `null` if the text is
 * not a day.
 */
export function dayStart(date: string, days = 0): string | null {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(date) ?? []
  if (year === undefined) return null
  return new Date(Number(year), Number(month) - 1, Number(day) + days).toISOString()
}

/**
 * Returns the request parameters for the values of all filters. A text that is not a valid day is sent unchanged, so
 * that the service reports the error.
 */
export function toQuery(
  filters: readonly Filter[],
  { since, until, ...same }: Given,
): Record<string, string> {
  const named = Object.entries(same).map(([name, value]) => {
    const filter = filters.find((one) => one.kind === 'choice' && one.name === name)
    const map = filter?.kind === 'choice' ? filter.toQuery : undefined
    return map?.(value) ?? { [name]: value }
  })
  return {
    ...Object.assign({}, ...named),
    ...(since === undefined ? {} : { after: dayStart(since) ?? since }),
    ...(until === undefined ? {} : { before: dayStart(until, 1) ?? until }),
  }
}

const SEARCH_MAX_LENGTH = 200

/**
 * Makes the form in which the user sets the filters of a list. The function `change` gets the values of all filters. A
 * chosen option takes effect at once, but a typed text only after the user presses Enter.
 */
export function filterBar(
  filters: readonly Filter[],
  given: Given,
  change: (given: Given) => void,
): HTMLFormElement {
  const read = (): Given =>
    givenOf(filters, new URLSearchParams(new FormData(form) as unknown as Record<string, string>))
  const apply = () => change(read())
  const control = (label: string, made: HTMLElement): HTMLElement =>
    h('label', { class: 'filter' }, h('span', {}, label), made)
  const field = (filter: Filter): Child => {
    switch (filter.kind) {
      case 'search':
        return h(
          'div',
          { class: 'search' },
          h('input', {
            type: 'search',
            name: filter.name,
            value: given[filter.name],
            maxlength: filter.maxLength ?? SEARCH_MAX_LENGTH,
            placeholder: filter.label,
            'aria-label': filter.label,
            autocomplete: 'off',
            'data-keep': `filter ${filter.name}`,
            // An emptied search field takes effect at once, because the browser's own button that empties a search
            // field does not submit the form.
            on: { input: ({ target }) => (target as HTMLInputElement).value === '' && apply() },
          }),
          h('button', { type: 'submit', class: 'button' }, 'Search'),
        )
      case 'choice':
        return control(
          filter.label,
          h(
            'select',
            { name: filter.name, 'data-keep': `filter ${filter.name}`, on: { change: apply } },
            filter.options.map(([value, label]) =>
              h('option', { value, selected: value === (given[filter.name] ?? '') }, label),
            ),
          ),
        )
      case 'text':
        return control(
          filter.label,
          h('input', {
            ...{ name: filter.name, value: given[filter.name], maxlength: SEARCH_MAX_LENGTH },
            ...{ autocomplete: 'off', spellcheck: 'false' },
            'data-keep': `filter ${filter.name}`,
            on: { change: apply },
          }),
        )
      case 'dates':
        return (['since', 'until'] as const).map((name) =>
          control(
            name === 'since' ? 'Since' : 'Until',
            h('input', {
              ...{ type: 'date', name, value: given[name], title: `Days in ${zoneName()}` },
              'data-keep': `filter ${name}`,
              on: { change: apply },
            }),
          ),
        )
    }
  }
  const isGiven = Object.keys(given).length > 0
  const form: HTMLFormElement = h(
    'form',
    {
      role: 'search',
      class: 'filters',
      on: {
        submit: (event) => {
          event.preventDefault()
          apply()
        },
      },
    },
    filters.map(field),
    isGiven ? button('Clear filters', () => change({}), { keep: 'clear filters' }) : null,
  )
  return form
}
