import { h } from './dom.ts'

/** What the page itself finds wrong with one field of a form. */
export class FieldError extends Error {
  readonly field: string
  constructor(field: string, message: string) {
    super(message)
    this.field = field
  }
}

/** The API says `emailName must be free`, `events[0] must be …`: the field, and what it must be. */
const REFUSED_FIELD = /^(\w+)(?:[[.]\S*)?( must .*)$/s

/** Where a form says what went wrong: at the field, where it is one field's; else below them all. */
export function troubleOf(form: HTMLFormElement, id: string) {
  const element = h('p', { class: 'trouble', role: 'alert', id })
  let forget = () => {}
  return {
    clear() {
      element.textContent = ''
      forget()
      forget = () => {}
    },
    show(error: unknown) {
      const message = error instanceof Error ? error.message : String(error)
      const [, named, demand] = REFUSED_FIELD.exec(message) ?? []
      const field = error instanceof FieldError ? error.field : named
      const control =
        field === undefined ? null : form.querySelector<HTMLElement>(`[name="${field}"]`)
      const group = control?.closest<HTMLElement>('fieldset, .field') ?? null
      if (control === null || group === null) {
        form.querySelector(':scope > .actions')?.before(element)
        element.textContent = message
        return
      }
      const label = group.querySelector('legend, label')?.textContent
      group.append(element)
      element.textContent = error instanceof FieldError ? message : `${label}${demand}`
      forget = describe(group.matches('fieldset') ? group : control, id)
      control.focus()
    },
  }
}

/** Ties what went wrong to what it went wrong with, for those who hear the page. @returns what unties it. */
function describe(described: HTMLElement, id: string): () => void {
  const before = described.getAttribute('aria-describedby')
  described.setAttribute('aria-describedby', before === null ? id : `${before} ${id}`)
  // A group as such is never invalid.
  if (!described.matches('fieldset')) described.ariaInvalid = 'true'
  return () => {
    described.ariaInvalid = null
    if (before === null) described.removeAttribute('aria-describedby')
    else described.setAttribute('aria-describedby', before)
  }
}
