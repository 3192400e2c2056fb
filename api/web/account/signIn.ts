import { ask } from '../kit/ask.ts'
import { field } from '../kit/dialog.ts'
import { type Child, h } from '../kit/dom.ts'
import { button, notice } from '../kit/ui.ts'
import { goToCompany, returnFromCompany } from './companyCalls.ts'
import { canUsePasskeys, signInWithPasskey } from './passkeyCalls.ts'
import type { SignInWays } from './types.ts'

const frame = (...children: Child[]): HTMLElement =>
  h('main', { class: 'sign-in' }, h('p', { class: 'brand' }, 'Purser'), children)

/** Runs an action, and shows an error of the action in the element `trouble`. */
const trying = (trouble: HTMLElement, act: () => Promise<void>) => async () => {
  trouble.replaceChildren()
  try {
    await act()
  } catch (error) {
    trouble.replaceChildren(notice('bad', (error as Error).message))
  }
}

/**
 * Shows the console page to which a sign-in link leads. The link is used up only when the person presses the button, so
 * that a program that previews links does not use it up.
 */
export function signInPage(): HTMLElement | Promise<HTMLElement> {
  const token = location.hash.slice(1)
  // The code replaces the address of the console page, so that the token of the sign-in link disappears from the
  // browser history.
  history.replaceState(null, '', '/console/login')
  if (token === '') return signInChoices('Sign in')
  const trouble = h('div', {})
  const use = async () => {
    await ask('/sessions', { method: 'POST', body: { token } })
    location.replace('/console')
  }
  return frame(
    h('h1', {}, 'Sign in'),
    h('p', {}, 'This link signs you in to the console of this service, once.'),
    trouble,
    button('Sign in', trying(trouble, use), { kind: 'primary' }),
  )
}

/** Shows a console page while the service cannot tell whether the person is signed in. */
export const awayPage = (error: unknown): HTMLElement =>
  frame(
    h('h1', {}, 'That did not work'),
    notice('bad', error instanceof Error ? error.message : String(error)),
    button('Try again', () => location.reload(), { kind: 'primary' }),
  )

/** Shows the console page to which the company's identity provider redirects the browser. */
export async function companyPage(): Promise<HTMLElement> {
  try {
    location.replace(await returnFromCompany())
    return frame(h('h1', {}, 'You are signed in'))
  } catch (error) {
    const choices = await signInChoices()
    choices.querySelector('h1')?.after(notice('bad', (error as Error).message))
    return choices
  }
}

/**
 * Shows the console page for people without a session, with every way to sign in.
 * @param entered is a function that runs after a successful sign-in with a passkey.
 */
export async function signInChoices(
  title = 'You are not signed in',
  entered: () => void = () => location.replace('/console'),
): Promise<HTMLElement> {
  const ways = await ask<SignInWays>('/sign-in-ways').catch(() => ({
    passkeys: false,
    company: null,
  }))
  const trouble = h('div', { role: 'status' })
  const enter = async () => {
    await signInWithPasskey()
    entered()
  }
  const form: HTMLFormElement = h(
    'form',
    {
      on: {
        submit: (event) => {
          event.preventDefault()
          void trying(trouble, () => askForLink(form, trouble))()
        },
      },
    },
    field('Your e-mail address', 'email', {
      type: 'email',
      required: true,
      maxlength: 320,
      autocomplete: 'username webauthn',
    }),
    h('button', { type: 'submit', class: 'button primary' }, 'Mail me a link'),
  )
  return frame(
    h('h1', {}, title),
    trouble,
    form,
    ways.passkeys && canUsePasskeys()
      ? button('Use a passkey', trying(trouble, enter), { keep: 'passkey' })
      : null,
    ways.company === null
      ? null
      : button(
          `Continue with ${ways.company}`,
          trying(trouble, () => goToCompany(false)),
          { keep: 'company' },
        ),
    h(
      'details',
      {},
      h('summary', {}, 'First sign-in, or no mail?'),
      h('p', {}, 'Create a link for the first operator on the machine that runs the service:'),
      h('pre', { class: 'text command' }, 'npm run console:login'),
      h('p', { class: 'note' }, 'In a container, which has no npm: bun run console:login'),
      h(
        'p',
        { class: 'note' },
        'A link works once, within fifteen minutes. A session ends after two hours without use, and after twelve hours at the latest.',
      ),
    ),
  )
}

async function askForLink(form: HTMLFormElement, trouble: HTMLElement): Promise<void> {
  const email = String(new FormData(form).get('email') ?? '').trim()
  const { message } = await ask<{ message: string }>('/sign-in-mails', {
    method: 'POST',
    body: { email },
  })
  trouble.replaceChildren(notice('good', `${message}. Open it in this browser.`))
}
