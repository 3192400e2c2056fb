import { ask } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { count, plural } from '../kit/format.ts'
import { plot } from '../kit/plot.ts'
import type { Screen } from '../kit/screen.ts'
import type { MailReports, ReportedSource } from '../kit/types.ts'
import { badge, empty, heading, notice, section, table } from '../kit/ui.ts'

const DAYS = 30
const DAY_MS = 86_400_000
const KINDS = [
  ['dmarc', 'Mail in our name', 'mails'],
  ['tls', 'TLS of mail to us', 'sessions'],
] as const

/**
 * Shows the reports of other mail hosts. The reports tell who sends mail in the name of this service, and which of
 * these mails pass SPF, DKIM and DMARC.
 */
export const reports: Screen = async ({ signal }) => {
  const found = await ask<MailReports>(`/v0/platform/mail-reports?days=${DAYS}`, { signal })
  const head = heading(
    'Reports',
    `What other mail hosts report about our domains, over ${DAYS} days.`,
  )
  const { unproven } = found
  const doubtful =
    unproven === 0
      ? null
      : notice(
          'wait',
          `${plural(unproven, 'report')} from senders that nobody vouches for are left out.`,
        )
  if (found.days.length === 0) {
    return [
      head,
      doubtful,
      empty('No report yet', 'Hosts that get mail from our domains send one a day.'),
    ]
  }
  return [
    head,
    doubtful,
    h(
      'div',
      { class: 'cards' },
      KINDS.map((kind) => card(found, kind)),
    ),
    sources(found),
  ]
}

function card({ days }: MailReports, [kind, title, unit]: (typeof KINDS)[number]): HTMLElement {
  const values = (of: 'passed' | 'failed') =>
    Array.from({ length: DAYS }, (_, n) => {
      const date = new Date(Date.now() - (DAYS - 1 - n) * DAY_MS).toISOString().slice(0, 10)
      return days.find((day) => day.kind === kind && day.date === date)?.[of] ?? 0
    })
  const [passed, failed] = [values('passed'), values('failed')]
  const [good, bad] = [total(passed), total(failed)]
  const figure = good + bad === 0 ? '–' : `${Math.floor((100 * good) / (good + bad))} %`
  const note = `passed, of ${count(good + bad)} ${unit}`
  return h(
    'section',
    { class: 'panel card' },
    h('h2', {}, title),
    h('p', { class: 'figure' }, figure),
    h('p', { class: 'note' }, note),
    plot(`${title}, ${DAYS} days: ${figure} ${note}`, [
      { tone: 'main', values: passed },
      { tone: 'bad', values: failed },
    ]),
  )
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

const sources = (found: MailReports): HTMLElement =>
  section(
    'sources',
    'Sources',
    { lead: null, actions: null },
    table<ReportedSource>(
      'Sources',
      [
        { name: 'Source', kind: 'main', cell: ({ source }) => source ?? 'all' },
        { name: 'Domain', cell: ({ domain }) => domain },
        { name: 'Report', cell: ({ kind }) => (kind === 'dmarc' ? 'DMARC' : 'TLS') },
        { name: 'Passed', cell: ({ isPassed }) => badge(isPassed ? 'ok' : 'broken') },
        { name: 'Result', cell: ({ result }) => result },
        { name: 'Count', cell: (source) => count(source.count) },
        { name: 'Reported by', cell: ({ reporters }) => reporters.join(', ') },
      ],
      found.sources,
    ),
  )
