import { type Child, h, replaceContent } from '../dom.ts'
import { count, plural } from '../format.ts'
import { readAll } from '../live.ts'
import type { Role } from '../types.ts'
import { button, type Column, toast } from '../ui.ts'
import { BULK_MAX } from './bulk.ts'

/** Holds the data of a chosen list item, even while its row is out of sight. */
export type Chosen = { id: string; name: string; weight: number }

export type Choosing<Item> = {
  /** Names the lowest role that may use the bulk actions. A person without this role sees no checkboxes. */
  needs: Role
  /**
   * Holds the noun for one item of the list, such as `message`. The caller also passes `plural`, unless the plural only
   * adds an s.
   */
  word: string
  plural?: string
  describe: (item: Item) => { id: string; name: string; weight?: number }
  acts: readonly {
    label: string
    danger?: boolean
    /**
     * Performs an action on the chosen rows of a list. When the action calls `done`, the list unchecks all rows and
     * loads again.
     */
    act: (chosen: Chosen[], done: () => Promise<void>) => void
  }[]
}

/** Makes checkboxes for the rows of a list, and buttons for the actions on all rows that the user has chosen. */
export function chooser<Item>(
  { needs, word, plural: words = `${word}s`, describe, acts }: Choosing<Item>,
  all: { path: string; name: string; query: Record<string, string> },
): { column: Column<Item>; bar: HTMLElement; whenDone: (refresh: () => Promise<void>) => void } {
  const chosen = new Map<string, Chosen>()
  let refresh = async () => {}
  const bar = h('div', { class: 'chosen', role: 'group', 'aria-label': 'Chosen' })
  const boxes = () => [
    ...document.querySelectorAll<HTMLInputElement>('main input[type="checkbox"][data-choose]'),
  ]
  const draw = (): void => {
    bar.hidden = chosen.size === 0
    replaceContent(
      bar,
      h('p', { role: 'status' }, `${plural(chosen.size, word, words)} chosen`),
      acts.map(
        ({ label, danger = false, act }): Child =>
          button(label, () => act([...chosen.values()], done), {
            ...{ kind: danger ? 'danger' : 'plain', keep: `chosen ${label}`, needs },
            label: `${label} chosen ${words}`,
          }),
      ),
      button('Choose all that match', chooseAll, { keep: 'choose all' }),
      button('Clear choice', () => forget(), { keep: 'choose none' }),
    )
  }
  const mark = (): void => {
    for (const box of boxes()) box.checked = chosen.has(box.dataset.choose!)
    draw()
  }
  const forget = (): void => {
    chosen.clear()
    mark()
  }
  const done = async (): Promise<void> => {
    forget()
    await refresh()
  }
  const take = (item: Item): Chosen => {
    const { id, name, weight = 1 } = describe(item)
    return { id, name, weight }
  }
  const chooseAll = async (): Promise<void> => {
    const status = bar.querySelector('[role="status"]')!
    const { items, more } = await readAll<string, Item>(all, {
      most: BULK_MAX,
      progress: (found) => {
        status.textContent = `${count(found)} found…`
      },
    }).catch((error: unknown) => {
      draw()
      throw error
    })
    for (const item of items) {
      const one = take(item)
      chosen.set(one.id, one)
    }
    mark()
    if (more) toast(`The first ${count(BULK_MAX)} are chosen: act on them, then on the rest`)
  }
  draw()
  const column: Column<Item> = {
    name: 'Choose',
    kind: 'choose',
    cell: (item) => {
      const one = take(item)
      return h('input', {
        type: 'checkbox',
        'data-choose': one.id,
        'data-keep': `choose ${one.id}`,
        'aria-label': `Choose ${one.name}`,
        checked: chosen.has(one.id),
        on: {
          change: ({ target }) => {
            if ((target as HTMLInputElement).checked) chosen.set(one.id, one)
            else chosen.delete(one.id)
            draw()
          },
        },
      })
    },
  }
  return {
    column,
    bar,
    whenDone: (again) => {
      refresh = again
    },
  }
}
