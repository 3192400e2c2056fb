import { ask, at } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { moment, short } from '../kit/format.ts'
import { liveList } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { Endpoint, PaymentItem } from '../kit/types.ts'
import { badge, type Column, empty, table } from '../kit/ui.ts'
import { income } from './income.ts'
import { filterForm, readFilters, toQuery } from './paymentFilters.ts'

const REFRESH_MS = 1_000

/**
 * Shows the income of a project, the conversion of payment challenges to payments, filters, and the list of the
 * project's payments.
 */
export const payments = ofProject('payments', async (project, { signal, query }) => {
  const { projectId } = project
  const filters = readFilters(query)
  const { endpoints } = await ask<{ endpoints: Endpoint[] }>(
    at`/projects/${projectId}/v0/sellers/endpoints?limit=100`,
    { signal },
  )
  return [
    await income(project, filters.endpointId, signal),
    filterForm(projectId, filters, endpoints),
    liveList<'payments', PaymentItem>({
      name: 'payments',
      signal,
      everyMs: REFRESH_MS,
      path: at`/projects/${projectId}/v0/payments`,
      query: toQuery(filters),
      none: () =>
        Object.keys(filters).length > 0
          ? empty('Nothing fits', 'No payment has all of this.')
          : empty(
              'No payments yet',
              'A payment appears here as soon as its authorization is accepted.',
            ),
      draw: (items) => table('Payments', columns(projectId), items),
    }).element,
  ]
})

const columns = (projectId: string): Column<PaymentItem>[] => [
  {
    name: 'Amount',
    kind: 'main',
    cell: ({ id, amountUsdc }) =>
      h(
        'a',
        { href: projectLink(projectId, 'payments', id), 'data-keep': id },
        `${amountUsdc} USDC`,
      ),
  },
  {
    name: 'State',
    cell: ({ status, failureMessage }) => [
      badge(status === 'verified' ? 'settling' : status),
      failureMessage === null ? null : h('p', { class: 'note' }, failureMessage),
    ],
  },
  { name: 'Resource', cell: ({ resourceUrl }) => h('code', {}, resourceUrl) },
  { name: 'Payer', cell: ({ payerAddress }) => short(payerAddress) },
  { name: 'Transaction', cell: ({ txHash }) => (txHash === null ? '–' : short(txHash)) },
  {
    name: 'Receipt',
    cell: ({ id, signedReceipt }) =>
      signedReceipt === null
        ? '–'
        : h(
            'a',
            {
              href: `${projectLink(projectId, 'payments', id)}?show=receipt`,
              'data-keep': `receipt-${id}`,
            },
            'signed',
          ),
  },
  {
    name: 'Webhook',
    cell: ({ id, latestDelivery }) =>
      latestDelivery === null
        ? 'none'
        : h(
            'a',
            {
              href: projectLink(projectId, 'webhooks', latestDelivery.deliveryId),
              'data-keep': `webhook-${id}`,
            },
            badge(latestDelivery.status),
          ),
  },
  { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
]
