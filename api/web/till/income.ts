/** The income of a project: plot, sums by endpoint and payer, and the books to download. */
import { ask, at, save } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { plot } from '../kit/plot.ts'
import type { Project } from '../kit/types.ts'
import { button, panel, table } from '../kit/ui.ts'

type Amount = { count: number; amountUsdc: string; amountUsdcRaw: string }

type Income = Amount & {
  byDay: (Amount & { day: string })[]
  byEndpoint: (Amount & { urlPattern: string | null })[]
  byPayer: (Amount & { payerAddress: string })[]
  own: Amount
}

const DAYS = 30
const DAY_MS = 24 * 60 * 60 * 1000
/** Rows of a sum that are shown. */
const ROWS_MAX = 5

export async function income({ projectId }: Project, signal: AbortSignal): Promise<HTMLElement> {
  const path = at`/projects/${projectId}/v0/payments`
  const found = await ask<Income>(`${path}/activity?days=${DAYS}`, { signal })
  const { count, amountUsdc, own } = found
  const byDay = new Map(found.byDay.map(({ day, amountUsdcRaw }) => [day, Number(amountUsdcRaw)]))
  const values = Array.from({ length: DAYS }, (_, n) => {
    const day = new Date(Date.now() - (DAYS - 1 - n) * DAY_MS).toISOString().slice(0, 10)
    return byDay.get(day) ?? 0
  })
  const download = (format: 'csv' | 'jsonl') =>
    button(`Download ${format.toUpperCase()}`, () =>
      save(`${path}/export?format=${format}`, `payments.${format}`),
    )
  return panel(
    `Last ${DAYS} days (UTC)`,
    h('p', { class: 'figure' }, `${amountUsdc} USDC`),
    h(
      'p',
      { class: 'note' },
      `${count} ${count === 1 ? 'payment' : 'payments'}`,
      own.count === 0 ? null : `, and ${own.amountUsdc} USDC from your own addresses`,
    ),
    plot(`Income of the last ${DAYS} days: ${amountUsdc} USDC`, [{ tone: 'main', values }]),
    found.byEndpoint.length < 2
      ? null
      : sums(
          'By endpoint',
          found.byEndpoint.map((sum) => ({ ...sum, name: sum.urlPattern ?? 'no endpoint' })),
        ),
    found.byPayer.length === 0
      ? null
      : sums(
          'By payer',
          found.byPayer.map((sum) => ({ ...sum, name: sum.payerAddress })),
        ),
    h('div', { class: 'actions' }, download('csv'), download('jsonl')),
  )
}

type Sum = { name: string; count: number; amountUsdc: string }

const sums = (title: string, all: readonly Sum[]): HTMLElement =>
  table(
    title,
    [
      { name: title, kind: 'main', cell: ({ name }) => h('code', {}, name) },
      { name: 'Payments', cell: ({ count }) => `${count}` },
      { name: 'Sum', cell: ({ amountUsdc }) => `${amountUsdc} USDC` },
    ],
    all.slice(0, ROWS_MAX),
  )
