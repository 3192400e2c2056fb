import { type Child, h } from '../kit/dom.ts'
import type { Authentication } from '../kit/types.ts'
import { badge } from '../kit/ui.ts'

/** Labels that every message has one of: what they say is seen without them. */
const PLAIN = new Set(['received', 'sent', 'read', 'unread'])

/** The labels of a message that say something of it; `told` stands beside them already. */
export function labelBadges(labels: readonly string[], told?: string): Child {
  const shown = labels.filter((label) => !PLAIN.has(label) && label !== told)
  if (shown.length === 0) return null
  return h(
    'ul',
    { class: 'labels', 'aria-label': 'Labels' },
    shown.map((label) => h('li', {}, badge(label))),
  )
}

const CHECKS = ['spf', 'dkim', 'dmarc', 'arc'] as const

/** Whether a received message comes from whom it names, in the words of RFC 8601. */
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
