import { ask } from '../kit/ask.ts'
import { type Child, h } from '../kit/dom.ts'
import { count, plural } from '../kit/format.ts'
import { live } from '../kit/live.ts'
import { plot, type Series } from '../kit/plot.ts'
import type { Screen } from '../kit/screen.ts'
import type { Minute, Overview } from '../kit/types.ts'
import { heading, notice, panel } from '../kit/ui.ts'

const REFRESH_MS = 2_000
const MINUTES = 60
const POOLS: readonly [string, string][] = [
  ['mail', 'Mail'],
  ['payments', 'Payments'],
  ['webhooks', 'Webhooks'],
  ['vault', 'Vault'],
  ['purse', 'Purse'],
]
/** A payment worker reports the chain's state every few seconds. */
const RPC_STALE_S = 60

/** Figures of the whole service. */
export const overview: Screen = ({ signal }) => [
  heading('Overview', 'The last hour, minute by minute.'),
  live({
    signal,
    everyMs: REFRESH_MS,
    load: (watching) => ask<Overview>('/overview', { watching, signal }),
    draw: (now) => [attention(now), cards(now), queues(now)],
  }).element,
]

/** The values of the last hour, one per minute; a minute without data is 0. */
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

function card(title: string, value: string, note: string, series: Series[]): HTMLElement {
  return h(
    'section',
    { class: 'panel card' },
    h('h2', {}, title),
    h('p', { class: 'figure' }, value),
    h('p', { class: 'note' }, note),
    plot(`${title}, last hour: ${value} ${note}`, series),
  )
}

function cards(now: Overview): HTMLElement {
  const { backlog } = now
  const mailIn = hour(now, (minute) => minute.mailIn)
  const mailOut = hour(now, (minute) => minute.mailOut)
  const payments = hour(now, (minute) => minute.payments)
  const hooksOk = hour(now, (minute) => minute.webhooksOk)
  const hooksFailed = hour(now, (minute) => minute.webhooksFailed)
  const paid = now.minutes.reduce((sum, minute) => sum + Number(minute.paidUsdc), 0)
  const attempts = total(hooksOk) + total(hooksFailed)
  const health = attempts === 0 ? '–' : `${Math.floor((100 * total(hooksOk)) / attempts)} %`
  return h(
    'div',
    { class: 'cards' },
    card('Mail in', count(total(mailIn)), 'received', [{ tone: 'main', values: mailIn }]),
    card('Mail out', count(total(mailOut)), `${count(backlog.outboundMails)} on their way`, [
      { tone: 'main', values: mailOut },
    ]),
    card(
      'Payments',
      count(total(payments)),
      `${paid.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 })} USDC settled, ${count(backlog.verifiedPayments)} settling`,
      [{ tone: 'main', values: payments }],
    ),
    card(
      'Webhook health',
      health,
      attempts === 0
        ? 'no attempts'
        : `of ${plural(attempts, 'attempt')}, ${count(backlog.pendingDeliveries)} pending`,
      [
        { tone: 'main', values: hooksOk },
        { tone: 'bad', values: hooksFailed },
      ],
    ),
  )
}

const queues = (now: Overview): HTMLElement =>
  panel(
    'Queues',
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

/** Notices of problems. */
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
