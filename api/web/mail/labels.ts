import { type Child, h } from '../kit/dom.ts'
import type { Authentication } from '../kit/types.ts'
import { badge } from '../kit/ui.ts'

/** Lists the labels for which the console shows no badge, because another element of the page already shows them. */
const PLAIN = new Set(['received', 'sent', 'read', 'unread'])

/**
 * Makes the badges for the labels of a message. It leaves out a label that another element of the console page already
 * shows.
 */
export function labelBadges(labels: readonly string[], alreadyShown?: string): Child {
  const shown = labels.filter((label) => !PLAIN.has(label) && label !== alreadyShown)
  if (shown.length === 0) return null
  return h(
    'ul',
    { class: 'labels', 'aria-label': 'Labels' },
    shown.map((label) => h('li', {}, badge(label))),
  )
}

const CHECKS = ['spf', 'dkim', 'dmarc', 'arc'] as const

/** Shows the authentication results of a received message (RFC 8601). */
export const authenticationBadges = (found: Authentication): HTMLElement =>
  h(
    'ul',
    { class: 'labels', 'aria-label': 'Authentication' },
    found.internal
      ? h('li', {}, badge('ok', 'from an inbox of this service'))
      : CHECKS.map((check) =>
          h('li', {}, badge(found[check], `${check.toUpperCase()} ${found[check]}`)),
        ),
  )
