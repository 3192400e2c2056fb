import { at } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { moment, short } from '../kit/format.ts'
import { liveList } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { PaymentItem } from '../kit/types.ts'
import { badge, empty, table } from '../kit/ui.ts'
import { income } from './income.ts'

const REFRESH_MS = 1_000

/** The payments of a project. */
export const payments = ofProject('payments', async (project, { signal }) => [
  await income(project, signal),
  liveList<'payments', PaymentItem>({
    name: 'payments',
    signal,
    everyMs: REFRESH_MS,
    path: at`/projects/${project.projectId}/v0/payments`,
    none: () =>
      empty('No payments yet', 'A payment appears here as soon as its authorization is accepted.'),
    draw: (items) =>
      table(
        'Payments',
        [
          {
            name: 'Amount',
            kind: 'main',
            cell: ({ id, amountUsdc }) =>
              h(
                'a',
                { href: projectLink(project.projectId, 'payments', id), 'data-keep': id },
                `${amountUsdc} USDC`,
              ),
          },
          {
            name: 'State',
            cell: ({ status, failureReason }) => [
              badge(status === 'verified' ? 'settling' : status),
              failureReason === null ? null : h('p', { class: 'note' }, failureReason),
            ],
          },
          { name: 'Resource', cell: ({ resourceUrl }) => h('code', {}, resourceUrl) },
          { name: 'Payer', cell: ({ payerAddress }) => short(payerAddress) },
          { name: 'Transaction', cell: ({ txHash }) => (txHash === null ? '–' : short(txHash)) },
          { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
        ],
        items,
      ),
  }).element,
])
