import { h } from './dom.ts'

/** Reports an error in one form field that the console itself finds before it sends a request. */
export class FieldError extends Error {
  readonly field: string
  constructor(field: string, message: string) {
    super(message)
    this.field = field
  }
}

/**
 * Matches error messages of the API that begin with the name of a field, such as `emailName must be free` or `events[0]
 * must be …`.
 */
const REFUSED_FIELD = /^(\w+)(?:[[.]\S*)?( must .*)$/s

/**
 * Shows the error of a form next to the invalid field. An error that concerns no field appears above the buttons of the
 * form.
 */
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

/**
 * Links an error to its form field for screen readers. @returns a function that removes the link between the error and
 * the form field.
 */
function describe(described: HTMLElement, id: string): () => void {
  const before = described.getAttribute('aria-describedby')
  described.setAttribute('aria-describedby', before === null ? id : `${before} ${id}`)
  // A fieldset gets no attribute aria-invalid, because WAI-ARIA does not allow it on an element with the role `group`.
  if (!described.matches('fieldset')) described.ariaInvalid = 'true'
  return () => {
    described.ariaInvalid = null
    if (before === null) described.removeAttribute('aria-describedby')
    else described.setAttribute('aria-describedby', before)
  }
}
