/** Shows the OAuth consent page, on which an app asks to act as a project and the owner decides. */
import { ask, at } from '../kit/ask.ts'
import { check, choice, field } from '../kit/dialog.ts'
import { type Child, h } from '../kit/dom.ts'
import type { Project, Session } from '../kit/types.ts'
import { button, empty, facts, notice } from '../kit/ui.ts'
import { signInChoices } from './signIn.ts'
import type { ConnectRequest } from './types.ts'

/**
 * Sets the maximum number of pages of the project list from which the owner can choose a project. The list begins with
 * the newest projects.
 */
const PAGES_MAX = 10
const TERMS: readonly (readonly [string, string])[] = [
  ['30', '30 days'],
  ['1', 'a day'],
  ['7', 'a week'],
  ['90', '90 days'],
]

const frame = (...children: Child[]): HTMLElement =>
  h('main', { class: 'sign-in' }, h('p', { class: 'brand' }, 'Purser'), children)

/**
 * Builds the HTML of the OAuth consent page. @param session is the owner's session. Null means that the owner is not
 * signed in yet.
 */
export async function connectPage(session: Session | null): Promise<HTMLElement> {
  const id = location.hash.slice(1)
  if (session === null) return signInFirst()
  try {
    const request = await ask<ConnectRequest>(at`/oauth/requests/${id}`)
    return consent(id, request, await loadProjects())
  } catch (error) {
    return frame(
      h('h1', {}, 'This app cannot be connected'),
      notice('bad', (error as Error).message),
    )
  }
}

async function loadProjects(): Promise<Project[]> {
  const projects: Project[] = []
  let next = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await ask<{ projects: Project[]; nextPageToken?: string }>(
      `/v0/platform/projects?limit=100${next === '' ? '' : at`&pageToken=${next}`}`,
    )
    projects.push(...answer.projects)
    if (answer.nextPageToken === undefined) break
    next = answer.nextPageToken
  }
  return projects
}

function consent(id: string, request: ConnectRequest, projects: Project[]): HTMLElement {
  const { clientName, clientHost, redirectHost, scopes } = request
  const name = clientName === '' ? 'An app without a name' : `“${clientName}”`
  const trouble = h('div', {})
  const decide = async (body: object) => {
    try {
      const { redirectTo } = await ask<{ redirectTo: string }>(at`/oauth/requests/${id}`, {
        method: 'POST',
        body,
      })
      location.assign(redirectTo)
    } catch (error) {
      trouble.replaceChildren(notice('bad', (error as Error).message))
    }
  }
  const form: HTMLFormElement = h(
    'form',
    { on: { submit: (event) => event.preventDefault() } },
    choice(
      'It acts as',
      'projectId',
      projects.map(({ projectId, name: title, emailAddress }) => [
        projectId,
        `${title} (${emailAddress})`,
      ]),
    ),
    h(
      'fieldset',
      {},
      h('legend', {}, 'It may'),
      scopes.map(({ scope, words, isTicked }) => check(words, 'scopes', scope, isTicked)),
    ),
    scopes.some(({ scope }) => scope === 'mail:send')
      ? check('Mail that it sends waits for my approval', 'holdsMail', 'yes', true)
      : null,
    choice('Until', 'days', TERMS),
    h(
      'div',
      { class: 'actions' },
      button('Deny', () => decide({ decision: 'deny' })),
      button(
        'Allow',
        async () => {
          const data = new FormData(form)
          await decide({
            decision: 'allow',
            projectId: data.get('projectId'),
            scopes: data.getAll('scopes'),
            days: Number(data.get('days')),
            holdsMail: data.get('holdsMail') === 'yes',
          })
        },
        { kind: 'primary' },
      ),
    ),
  )
  return frame(
    h('h1', {}, 'Connect an app'),
    h('p', {}, name, ' asks to act as one of your projects.'),
    facts([
      ['App', clientHost ?? 'registered itself; nobody has verified its name'],
      ['Sends you back to', h('strong', {}, redirectHost)],
    ]),
    redirectHost === 'this computer'
      ? notice(
          'wait',
          'Any program on this computer could take the answer. Go on only if you have just started the app here.',
        )
      : null,
    projects.length === 0
      ? empty('No project yet', 'Create one in the console, and begin again in the app.')
      : form,
    trouble,
    h('p', { class: 'note' }, 'Connected apps, in the console, ends it at any time.'),
  )
}

/**
 * Shows every way in which the owner can sign in. An owner with a sign-in link from a mail or a terminal can paste it
 * into the form without leaving the consent page.
 */
async function signInFirst(): Promise<HTMLElement> {
  const trouble = h('div', {})
  const link = field(
    'Sign-in link',
    'link',
    { type: 'url' },
    'From the mail, or from npm run console:login.',
  )
  const page = await signInChoices('Sign in to connect an app', () => location.reload())
  page.append(
    link,
    h(
      'div',
      { class: 'actions' },
      button(
        'Sign in',
        async () => {
          const { value } = link.querySelector('input')!
          try {
            await ask('/sessions', { method: 'POST', body: { token: value.split('#')[1] ?? '' } })
            location.reload()
          } catch (error) {
            trouble.replaceChildren(notice('bad', (error as Error).message))
          }
        },
        { kind: 'primary' },
      ),
    ),
    trouble,
  )
  return page
}
