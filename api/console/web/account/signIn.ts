import { ask } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { button, notice } from '../kit/ui.ts'

const brand = () => h('p', { class: 'brand' }, 'Purser')

/** The page that a sign-in link leads to: the link is used when the button is pressed, and not before. */
export function signInPage(): HTMLElement {
  const token = location.hash.slice(1)
  // The token stays in no history.
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

/** The page of whoever is not signed in. */
export const signedOutPage = (): HTMLElement =>
  h('main', { class: 'sign-in' }, brand(), h('h1', {}, 'You are not signed in'), howToSignIn())

const howToSignIn = () => [
  h('p', {}, 'On the machine that runs the service, ask for a link:'),
  h('pre', { class: 'text command' }, 'bun run console:login'),
  h(
    'p',
    { class: 'note' },
    'It is good once, for fifteen minutes. A session ends after two hours without use, and after twelve in any case.',
  ),
]
