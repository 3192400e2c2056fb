/** Shows for each endpoint how many payment challenges led to payments. */
import { h } from '../kit/dom.ts'
import { count } from '../kit/format.ts'
import { projectLink } from '../kit/screen.ts'
import { table } from '../kit/ui.ts'

export type Stages = {
  challenges: number
  refused: number
  claimed: number
  settled: number
  failed: number
  amountUsdc: string
  amountUsdcRaw: string
}

export type Funnel = {
  total: Stages
  byDay: (Stages & { day: string })[]
  byEndpoint: (Stages & { endpointId: string | null; urlPattern: string | null })[]
}

/** Sets the maximum number of endpoints in the conversion table (the funnel). */
const ROWS_MAX = 10

/** Describes in one sentence how many payment challenges led to payments. */
export const inWords = ({ challenges, refused, settled, failed }: Stages): string =>
  `${count(challenges)} challenges, ${count(settled)} paid, ${count(failed)} failed, ${count(refused)} refused`

/** Makes a table with one row for each endpoint. The name of an endpoint links to the payments for this endpoint. */
export const funnelTable = (projectId: string, rows: Funnel['byEndpoint']): HTMLElement =>
  table(
    'From challenge to paid',
    [
      {
        name: 'Endpoint',
        kind: 'main',
        cell: ({ endpointId, urlPattern }) =>
          endpointId === null
            ? 'no endpoint'
            : h(
                'a',
                {
                  href: `${projectLink(projectId, 'payments')}?endpointId=${endpointId}`,
                  'data-keep': endpointId,
                },
                urlPattern ?? endpointId,
              ),
      },
      { name: 'Challenges', kind: 'num', cell: ({ challenges }) => count(challenges) },
      { name: 'Refused', kind: 'num', cell: ({ refused }) => count(refused) },
      { name: 'Claimed', kind: 'num', cell: ({ claimed }) => count(claimed) },
      { name: 'Failed', kind: 'num', cell: ({ failed }) => count(failed) },
      { name: 'Paid', kind: 'num', cell: ({ settled }) => count(settled) },
      { name: 'Sum', kind: 'num', cell: ({ amountUsdc }) => `${amountUsdc} USDC` },
    ],
    rows.slice(0, ROWS_MAX),
  )
