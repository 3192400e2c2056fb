import { ask } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { button, notice } from '../kit/ui.ts'

const brand = () => h('p', { class: 'brand' }, 'Purser')

/** The page of a sign-in link. Only the button uses the link up. */
export function signInPage(): HTMLElement {
  const token = location.hash.slice(1)
  // Removes the token from the browser history.
  history.replaceState(null, '', '/console/login')
  const trouble = h('div', {})
  const main = h(
    'main',
    { class: 'sign-in' },
    brand(),
    h('h1', {}, 'Sign in'),
    token === ''
      ? howToSignIn()
      : h('p', {}, 'This link signs you in to the console of this service, once.'),
    trouble,
    token === ''
      ? null
      : button(
          'Sign in',
          async () => {
            try {
              await ask('/sessions', { method: 'POST', body: { token } })
              location.replace('/console')
            } catch (error) {
              trouble.replaceChildren(notice('bad', (error as Error).message))
            }
          },
          { kind: 'primary' },
        ),
  )
  return main
}

/** The page without a session. */
export const signedOutPage = (): HTMLElement =>
  h('main', { class: 'sign-in' }, brand(), h('h1', {}, 'You are not signed in'), howToSignIn())

const howToSignIn = () => [
  h('p', {}, 'Create a sign-in link on the machine that runs the service:'),
  h('pre', { class: 'text command' }, 'npm run console:login'),
  h('p', { class: 'note' }, 'In a container, which has no npm: bun run console:login'),
  h(
    'p',
    { class: 'note' },
    'The link works once, within fifteen minutes. A session ends after two hours without use, and after twelve hours at the latest.',
  ),
]
