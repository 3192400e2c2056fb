import { type Child, h } from './dom.ts'
import { FieldError, troubleOf } from './trouble.ts'
import { button, copyButton, toasts } from './ui.ts'

type DialogParts = {
  title: string
  body: Child
  /** Holds the label of the dialog's main button. */
  action: string
  danger?: boolean
  /**
   * Runs when the user presses the main button of the dialog. If `act` fails, the dialog shows the error and stays
   * open. If `act` returns a function, it runs after the dialog has closed.
   */
  act: (form: FormData) => Promise<unknown>
  /**
   * Asks the user for confirmation before the dialog closes without its action, for example by Escape. The dialog
   * closes only if the answer is `true`.
   */
  leaving?: () => boolean | Promise<boolean>
  /** Runs when the dialog has closed, for any reason. */
  closed?: () => void
  /** Adds buttons before the main button of the dialog. */
  more?: Child
}

let dialogs = 0

/** Opens a modal dialog. Escape and Cancel close it without a change. The browser keeps the focus inside the dialog. */
export function openDialog(parts: DialogParts): void {
  const { title, body, action, danger = false, act, leaving = () => true, more } = parts
  const id = `dialog-${++dialogs}`
  const submit = h(
    'button',
    { type: 'submit', class: `button ${danger ? 'danger' : 'primary'}` },
    action,
  )
  const form: HTMLFormElement = h(
    'form',
    {
      on: {
        submit: (event) => {
          event.preventDefault()
          void send()
        },
      },
    },
    h('h2', { id }, title),
    body,
    h(
      'div',
      { class: 'actions' },
      button('Cancel', () => leave()),
      more,
      submit,
    ),
  )
  const trouble = troubleOf(form, `${id}-trouble`)
  const made: HTMLDialogElement = h('dialog', { 'aria-labelledby': id }, form)
  async function leave(): Promise<void> {
    try {
      if (await leaving()) made.close()
    } catch (error) {
      trouble.clear()
      trouble.show(error)
    }
  }
  made.addEventListener('cancel', (event) => {
    event.preventDefault()
    void leave()
  })
  async function send(): Promise<void> {
    if (submit.disabled) return
    submit.disabled = true
    trouble.clear()
    try {
      const next = await act(new FormData(form))
      made.close()
      if (typeof next === 'function') next()
    } catch (error) {
      trouble.show(error)
    } finally {
      submit.disabled = false
    }
  }
  if (parts.closed !== undefined) made.addEventListener('close', parts.closed)
  show(made)
}

/** Shows a dialog, and removes its HTML element after the dialog has closed. */
function show(made: HTMLDialogElement): void {
  made.addEventListener('close', () => {
    made.remove()
    const open = [...document.querySelectorAll('dialog[open]')].at(-1)
    ;(open ?? document.body).append(toasts)
  })
  document.body.append(made)
  made.showModal()
  // The toast messages move into the dialog, because screen readers ignore live regions (announced texts) behind a
  // modal dialog.
  made.append(toasts)
}

type Attributes = Record<string, string | number | boolean | undefined>

/**
 * Makes a form control with its label and its help text. The function `control` gets the attributes that link the
 * control to both texts.
 */
function labelled(
  label: string,
  name: string,
  help: Child,
  control: (ties: Attributes) => HTMLElement,
): HTMLElement {
  const id = `field-${name}-${++dialogs}`
  const helpId = `${id}-help`
  return h(
    'div',
    { class: 'field' },
    h('label', { for: id }, label),
    control({ id, name, 'aria-describedby': help === null ? undefined : helpId }),
    help === null ? null : h('p', { class: 'help', id: helpId }, help),
  )
}

/** Makes one form field with its label and its help text. */
export const field = (
  label: string,
  name: string,
  attributes: Attributes = {},
  help: Child = null,
): HTMLElement =>
  labelled(label, name, help, (ties) =>
    h('input', { ...ties, autocomplete: 'off', spellcheck: 'false', ...attributes }),
  )

/** Makes a form field with several lines of text. */
export const textArea = (
  label: string,
  name: string,
  attributes: Attributes = {},
  value = '',
): HTMLElement =>
  labelled(label, name, null, (ties) =>
    h('textarea', { ...ties, rows: 8, dir: 'auto', ...attributes }, value),
  )

/** Makes a checkbox with its label. */
export function check(label: Child, name: string, value: string, checked: boolean): HTMLElement {
  return h(
    'label',
    { class: 'check' },
    h('input', { type: 'checkbox', name, value, checked }),
    h('span', {}, label),
  )
}

/**
 * Makes a form control in which the user selects one option. The first option is selected by default. The caller can
 * disable individual options.
 */
export const choice = (
  label: string,
  name: string,
  options: readonly (readonly [value: string, label: string, disabled?: boolean])[],
  help: Child = null,
): HTMLElement =>
  labelled(label, name, help, (ties) =>
    h(
      'select',
      ties,
      options.map(([value, text, disabled]) => h('option', { value, disabled }, text)),
    ),
  )

/** Makes a group of checkboxes that share one field name. */
export const checks = (
  legend: string,
  name: string,
  options: readonly (readonly [value: string, label: Child])[],
  chosen: readonly string[],
): HTMLElement =>
  h(
    'fieldset',
    {},
    h('legend', {}, legend),
    options.map(([value, label]) => check(label, name, value, chosen.includes(value))),
  )

/**
 * Returns a name in the form that a browser shows: several blanks in a row become one blank, and blanks at the ends
 * disappear.
 */
const asShown = (name: string): string => name.replace(/\s+/g, ' ').trim()

/** Asks the user to confirm an irreversible action by typing the name of the affected object. */
export function confirmByTyping(parts: {
  title: string
  text: Child
  name: string
  action: string
  act: () => Promise<unknown>
}): void {
  openDialog({
    title: parts.title,
    danger: true,
    action: parts.action,
    body: [
      h('p', {}, parts.text),
      field(`Type “${parts.name}” to confirm`, 'typed', { required: true }),
    ],
    act: async (form) => {
      if (asShown(String(form.get('typed'))) !== asShown(parts.name)) {
        throw new FieldError('typed', `Type exactly: ${parts.name}`)
      }
      return await parts.act()
    },
  })
}

/** Shows a text in a dialog until the user closes the dialog. */
export function openNote(title: string, ...body: Child[]): void {
  const id = `dialog-${++dialogs}`
  const close = button('Close', () => made.close(), { kind: 'primary' })
  const made: HTMLDialogElement = h(
    'dialog',
    { 'aria-labelledby': id },
    h('h2', { id }, title),
    body,
    h('div', { class: 'actions' }, close),
  )
  show(made)
}

/** Asks the user to choose one of several options. The Escape key chooses the first option. */
export function askWay<Way extends string>(
  title: string,
  text: Child,
  ways: readonly [way: Way, label: string, kind?: 'primary' | 'danger'][],
): Promise<Way> {
  const id = `dialog-${++dialogs}`
  let answer = ways[0]![0]
  const made: HTMLDialogElement = h(
    'dialog',
    { 'aria-labelledby': id },
    h('h2', { id }, title),
    h('p', {}, text),
    h(
      'div',
      { class: 'actions' },
      ways.map(([way, label, kind]) =>
        button(
          label,
          () => {
            answer = way
            made.close()
          },
          kind === undefined ? {} : { kind },
        ),
      ),
    ),
  )
  show(made)
  return new Promise((resolve) => made.addEventListener('close', () => resolve(answer)))
}

/** Shows a new secret in a dialog. The console shows a new secret only in this dialog and never again. */
export function showOnce(title: string, key: string, text: string): void {
  const id = `dialog-${++dialogs}`
  const input = h('input', { readonly: true, value: key, class: 'secret', 'aria-label': title })
  const made: HTMLDialogElement = h(
    'dialog',
    { 'aria-labelledby': id },
    h('h2', { id }, title),
    h('p', {}, text),
    h('div', { class: 'copyable' }, input, copyButton(key)),
    h(
      'div',
      { class: 'actions' },
      button('I have stored it', () => made.close(), { kind: 'primary' }),
    ),
  )
  show(made)
  input.select()
}
