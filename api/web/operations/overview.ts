import { ask } from '../kit/ask.ts'
import { type Child, h } from '../kit/dom.ts'
import { count, plural, zoneName } from '../kit/format.ts'
import { live } from '../kit/live.ts'
import { plot, type Series } from '../kit/plot.ts'
import type { Screen } from '../kit/screen.ts'
import type { Minute, Overview, Part } from '../kit/types.ts'
import { heading, notice, panel, tabs } from '../kit/ui.ts'

const REFRESH_MS = 2_000
const LONG_REFRESH_MS = 15_000
const MINUTES = 60
const POOLS: readonly [string, string][] = [
  ['mail', 'Mail'],
  ['payments', 'Payments'],
  ['webhooks', 'Webhooks'],
  ['vault', 'Vault'],
  ['purse', 'Purse'],
]
/** Sets after how many seconds a report on the chain is outdated, because payment workers report every few seconds. */
const RPC_STALE_S = 60

/** Lists the periods that the overview can show. The text `parts` tells how each period is divided. */
const RANGES: readonly (readonly [range: string, label: string, parts: string])[] = [
  ['hour', 'Hour', 'minute by minute'],
  ['day', 'Day', 'by half hours'],
  ['week', 'Week', 'by two hours'],
  ['month', 'Month', 'day by day'],
]

/** Shows the figures of the whole service for one period, which the address of the console page names. */
export const overview: Screen = ({ signal, query }) => {
  const [range, label, parts] = RANGES.find(([name]) => name === query.get('range')) ?? RANGES[0]!
  // The code reverses the sign, because the service counts a time zone in minutes east of UTC, but browsers count
  // minutes west of UTC.
  const zoneMinutes = String(-new Date().getTimezoneOffset())
  const wanted = new URLSearchParams({ range, zoneMinutes })
  return [
    heading('Overview', `The last ${label.toLowerCase()}, ${parts}, in ${zoneName()}.`),
    tabs(
      'Time',
      RANGES.map(([name, text]) => ({
        href: name === 'hour' ? '#/' : `#/?range=${name}`,
        name: text,
        current: name === range,
      })),
    ),
    live({
      signal,
      everyMs: range === 'hour' ? REFRESH_MS : LONG_REFRESH_MS,
      load: (watching) => ask<Overview>(`/overview?${wanted}`, { watching, signal }),
      draw: (now) => [attention(now), cards(now, label.toLowerCase()), queues(now)],
    }).element,
  ]
}

/** Returns one figure for each part of the chosen period. The figure for a part without counts is 0. */
function history({ at, history: shown }: Overview, value: (part: Part) => number): number[] {
  const { widthMs, parts, count: length } = shown
  const values = Array<number>(length).fill(0)
  const last = parts.at(-1)
  if (last === undefined) return values
  // The end of the period is the start of the current part, which may have no counts yet. The code computes this time
  // from the last part with counts, because all parts have the same width.
  const endMs =
    Date.parse(last.at) + Math.floor((Date.parse(at) - Date.parse(last.at)) / widthMs) * widthMs
  for (const part of parts) {
    const place = length - 1 - Math.round((endMs - Date.parse(part.at)) / widthMs)
    if (place >= 0) values[place] = value(part)
  }
  return values
}

/** Returns one figure for each minute of the last hour. The figure for a minute without data is 0. */
function hour(now: Overview, value: (minute: Minute) => number): number[] {
  const end = Math.floor(Date.parse(now.at) / 60_000)
  const values = Array<number>(MINUTES).fill(0)
  for (const minute of now.minutes) {
    const place = MINUTES - 1 - (end - Math.floor(Date.parse(minute.at) / 60_000))
    if (place >= 0 && place < MINUTES) values[place] = value(minute)
  }
  return values
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

function card(
  title: string,
  { value, note, range }: { value: string; note: string; range: string },
  series: Series[],
): HTMLElement {
  return h(
    'section',
    { class: 'panel card' },
    h('h2', {}, title),
    h('p', { class: 'figure' }, value),
    h('p', { class: 'note' }, note),
    plot(`${title}, last ${range}: ${value} ${note}`, series),
  )
}

function cards(now: Overview, range: string): HTMLElement {
  const { backlog } = now
  const mailIn = history(now, (part) => part.mailIn)
  const mailOut = history(now, (part) => part.mailOut)
  const payments = history(now, (part) => part.payments)
  const hooksOk = history(now, (part) => part.webhooksOk)
  const hooksFailed = history(now, (part) => part.webhooksFailed)
  const paid = now.history.parts.reduce((sum, part) => sum + Number(part.paidUsdc), 0)
  const attempts = total(hooksOk) + total(hooksFailed)
  const health = attempts === 0 ? '–' : `${Math.floor((100 * total(hooksOk)) / attempts)} %`
  return h(
    'div',
    { class: 'cards' },
    card('Mail in', { value: count(total(mailIn)), note: 'received', range }, [
      { tone: 'main', values: mailIn },
    ]),
    card(
      'Mail out',
      { value: count(total(mailOut)), note: `${count(backlog.outboundMails)} on their way`, range },
      [{ tone: 'main', values: mailOut }],
    ),
    card(
      'Payments',
      {
        range,
        value: count(total(payments)),
        note: `${paid.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 })} USDC settled, ${count(backlog.verifiedPayments)} settling`,
      },
      [{ tone: 'main', values: payments }],
    ),
    card(
      'Webhook health',
      {
        range,
        value: health,
        note:
          attempts === 0
            ? 'no attempts'
            : `of ${plural(attempts, 'attempt')}, ${count(backlog.pendingDeliveries)} pending`,
      },
      [
        { tone: 'main', values: hooksOk },
        { tone: 'bad', values: hooksFailed },
      ],
    ),
  )
}

const queues = (now: Overview): HTMLElement =>
  panel(
    'Queues, last hour',
    h(
      'div',
      { class: 'queues' },
      POOLS.map(([pool, label]) => {
        const depth = now.jobs[pool] ?? 0
        return h(
          'div',
          {},
          h(
            'p',
            { class: 'queue' },
            h('span', {}, label),
            h('strong', {}, count(depth)),
            h('span', { class: 'note' }, depth === 1 ? 'job' : 'jobs'),
          ),
          plot(`Jobs of the ${pool} pool over the last hour; ${depth} now`, [
            { tone: 'soft', values: hour(now, (minute) => minute.jobs?.[pool] ?? 0) },
          ]),
        )
      }),
    ),
    h(
      'p',
      { class: 'note' },
      `${plural(now.backlog.workerPools, 'worker pool')} running`,
      now.backlog.headNumber === null ? null : ` · block ${count(now.backlog.headNumber)}`,
      now.backlog.unfinalizedPayments === 0
        ? null
        : ` · ${plural(now.backlog.unfinalizedPayments, 'payment')} not final yet`,
      ' · ',
      h('a', { href: '#/jobs', 'data-keep': 'jobs' }, 'All jobs'),
    ),
  )

/** Shows notices of problems of the service. */
function attention({ backlog, failedJobs }: Overview): Child {
  const { rpcReportAgeS, rpcAnswers } = backlog
  return [
    backlog.workerPools === 0
      ? notice(
          'bad',
          'No worker is running: mail, payments and webhooks wait. Start one with ',
          h('code', {}, 'bun run workers'),
          '.',
        )
      : null,
    rpcReportAgeS !== null && rpcReportAgeS < RPC_STALE_S && !rpcAnswers
      ? notice('bad', 'The chain’s RPC does not answer: payments are accepted and wait for it.')
      : null,
    failedJobs === 0
      ? null
      : notice(
          'wait',
          `${plural(failedJobs, 'job')} failed for good. `,
          h('a', { href: '#/jobs/failed', 'data-keep': 'failed' }, 'Look at them'),
        ),
  ]
}
