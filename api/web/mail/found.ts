import { ask } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { percent } from '../kit/percent.ts'
import type { SingleMessage } from '../kit/types.ts'
import { badge, button, copyButton } from '../kit/ui.ts'

/**
 * Shows the one-time codes and links in a message. The console shows the address of each link only as text to copy, so
 * that the user cannot open it by accident.
 */
export async function showFound(body: HTMLElement, path: string): Promise<void> {
  const { codes = [], links = [] } = await ask<SingleMessage>(path)
  body.replaceChildren(
    h('h3', {}, 'Codes'),
    codes.length === 0
      ? h('p', { class: 'note' }, 'No one-time code was found.')
      : h(
          'ul',
          { class: 'found-list', 'aria-label': 'One-time codes' },
          codes.map(({ value, confidence, part, line }) =>
            h(
              'li',
              {},
              h('code', {}, value),
              copyButton(value),
              h('p', { class: 'note', dir: 'auto' }, `${part}, ${percent(confidence)}: ${line}`),
            ),
          ),
        ),
    h('h3', {}, 'Links'),
    links.length === 0
      ? h('p', { class: 'note' }, 'No link was found.')
      : h('ul', { class: 'found-list', 'aria-label': 'Links' }, links.map(linkItem)),
  )
}

/**
 * Shows a link in a message. The console shows the address of a password-reset link only after a click, because anyone
 * who sees it can take over the account.
 */
function linkItem({ href, text, purpose, sensitive }: NonNullable<SingleMessage['links']>[number]) {
  const address = h('div', {})
  const show = () =>
    address.replaceChildren(h('code', { class: 'address' }, href), copyButton(href))
  if (sensitive) address.append(button('Show the reset link', show))
  else show()
  return h('li', {}, badge(purpose), h('bdi', {}, ` ${text}`), address)
}
