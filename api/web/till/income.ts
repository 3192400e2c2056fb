/**
 * Shows the income of a project, with a plot, the conversion of payment challenges to payments, sums by payer, and a
 * download of the accounting records.
 */
import { ask, at, save } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { plot } from '../kit/plot.ts'
import type { Project } from '../kit/types.ts'
import { button, panel, table } from '../kit/ui.ts'
import { type Funnel, funnelTable, inWords } from './funnel.ts'

type Amount = { count: number; amountUsdc: string; amountUsdcRaw: string }

type Income = Amount & {
  byDay: (Amount & { day: string })[]
  byPayer: (Amount & { payerAddress: string })[]
  own: Amount
}

const DAYS = 30
const DAY_MS = 24 * 60 * 60 * 1000
/** Sets the maximum number of rows in each table of the income, such as the sums by payer. */
const ROWS_MAX = 5

/** Shows the income of a project. @param endpointId limits the shown income to one endpoint. */
export async function income(
  { projectId }: Project,
  endpointId: string | undefined,
  signal: AbortSignal,
): Promise<HTMLElement> {
  const path = at`/projects/${projectId}/v0/payments`
  const query = new URLSearchParams({ days: String(DAYS) })
  if (endpointId !== undefined) query.set('endpointId', endpointId)
  const [found, funnel] = await Promise.all([
    ask<Income>(`${path}/activity?days=${DAYS}`, { signal }),
    ask<Funnel>(`${path}/funnel?${query}`, { signal }),
  ])
  const { own } = found
  const isWhole = endpointId === undefined
  const { amountUsdc, count } = isWhole
    ? found
    : { amountUsdc: funnel.total.amountUsdc, count: funnel.total.settled }
  const days = isWhole ? found.byDay : funnel.byDay
  const byDay = new Map(days.map(({ day, amountUsdcRaw }) => [day, Number(amountUsdcRaw)]))
  const values = Array.from({ length: DAYS }, (_, n) => {
    const day = new Date(Date.now() - (DAYS - 1 - n) * DAY_MS).toISOString().slice(0, 10)
    return byDay.get(day) ?? 0
  })
  const download = (format: 'csv' | 'jsonl') =>
    button(`Download ${format.toUpperCase()}`, () =>
      save(`${path}/export?format=${format}`, `payments.${format}`),
    )
  return panel(
    `Last ${DAYS} days (UTC)${isWhole ? '' : ', one endpoint'}`,
    h('p', { class: 'figure' }, `${amountUsdc} USDC`),
    h(
      'p',
      { class: 'note' },
      `${count} ${count === 1 ? 'payment' : 'payments'}`,
      !isWhole || own.count === 0 ? null : `, and ${own.amountUsdc} USDC from your own addresses`,
      `. ${inWords(funnel.total)}.`,
    ),
    plot(`Income of the last ${DAYS} days: ${amountUsdc} USDC`, [{ tone: 'main', values }]),
    funnel.byEndpoint.length === 0 ? null : funnelTable(projectId, funnel.byEndpoint),
    !isWhole || found.byPayer.length === 0 ? null : payers(found.byPayer),
    h('div', { class: 'actions' }, download('csv'), download('jsonl')),
  )
}

const payers = (all: Income['byPayer']): HTMLElement =>
  table(
    'By payer',
    [
      { name: 'By payer', kind: 'main', cell: ({ payerAddress }) => h('code', {}, payerAddress) },
      { name: 'Payments', cell: ({ count }) => `${count}` },
      { name: 'Sum', cell: ({ amountUsdc }) => `${amountUsdc} USDC` },
    ],
    all.slice(0, ROWS_MAX),
  )
