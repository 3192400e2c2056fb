import { type Jwks, verifyReceipt } from '../../client/verifyReceipt.ts'
import { ask, at } from '../kit/ask.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { live } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { Payment } from '../kit/types.ts'
import { badge, button, copyButton, facts, notice, panel, table } from '../kit/ui.ts'

const REFRESH_MS = 1_000

/** One payment with its receipt. The browser can verify the receipt itself. */
export const payment = ofProject('payments', (project, { params, signal }) => {
  const path = at`/projects/${project.projectId}/v0/payments/${params[1]!}`
  return [
    h('a', { class: 'back', href: projectLink(project.projectId, 'payments') }, '← Payments'),
    live({
      signal,
      everyMs: REFRESH_MS,
      load: (watching) => ask<Payment>(path, { watching, signal }),
      draw: (shown) => [summary(shown), receipt(shown), deliveries(project.projectId, shown)],
    }).element,
  ]
})

const summary = (shown: Payment): HTMLElement =>
  panel(
    `${shown.amountUsdc} USDC`,
    facts([
      [
        'State',
        [
          badge(shown.status === 'verified' ? 'settling' : shown.status),
          shown.finalizedAt === null ? null : ' final',
        ],
      ],
      shown.failureReason === null
        ? null
        : [
            'Reason',
            [shown.failureReason, shown.failureDetail === null ? null : `: ${shown.failureDetail}`],
          ],
      ['Resource', h('code', {}, shown.resourceUrl)],
      ['Network', shown.network],
      ['Payer', h('code', {}, shown.payerAddress)],
      ['Paid to', h('code', {}, shown.recipientAddress)],
      [
        'Transaction',
        shown.txHash === null
          ? 'not sent yet'
          : [h('code', {}, shown.txHash), ' ', copyButton(shown.txHash)],
      ],
      ['Accepted', moment(shown.createdAt)],
      ['Settled', shown.settledAt === null ? 'not yet' : moment(shown.settledAt)],
      ['Identifier', h('code', {}, shown.id)],
    ]),
  )

function receipt(shown: Payment): Child {
  const { signedReceipt } = shown
  if (signedReceipt === null)
    return panel('Receipt', h('p', { class: 'note' }, 'Signed once the payment has settled.'))
  const verdict = h('div', { role: 'status' })
  const text = JSON.stringify(signedReceipt, null, 2)
  return panel(
    'Receipt',
    h(
      'p',
      {},
      'Signed with Ed25519. The check happens in this browser, against the keys that this service publishes.',
    ),
    h(
      'div',
      { class: 'actions' },
      button('Verify', async () => verdict.replaceChildren(await verify(signedReceipt)), {
        kind: 'primary',
        keep: 'verify',
      }),
      copyButton(text, 'Copy receipt'),
    ),
    verdict,
    h(
      'details',
      { 'data-keep': 'receipt' },
      h('summary', {}, 'Show receipt'),
      h('pre', { class: 'raw', tabindex: 0, role: 'region', 'aria-label': 'Receipt' }, text),
    ),
  )
}

async function verify(signedReceipt: unknown): Promise<HTMLElement> {
  if (crypto.subtle === undefined) {
    return notice('wait', 'This browser checks signatures only over https, or on this machine.')
  }
  try {
    const answer = await fetch('/.well-known/jwks.json')
    const body = await verifyReceipt({
      receipt: signedReceipt,
      keys: (await answer.json()) as Jwks,
    })
    return notice(
      'good',
      `The signature is valid: ${body.payerAddress} paid for ${body.resource} in transaction ${body.txHash}.`,
    )
  } catch (error) {
    return notice('bad', error instanceof Error ? error.message : String(error))
  }
}

const deliveries = (projectId: string, shown: Payment): Child =>
  shown.deliveries.length === 0
    ? null
    : table(
        'Webhook deliveries of this payment',
        [
          {
            name: 'Delivery',
            kind: 'main',
            cell: ({ deliveryId }) =>
              h(
                'a',
                { href: projectLink(projectId, 'webhooks', deliveryId), 'data-keep': deliveryId },
                'payment.received',
              ),
          },
          { name: 'State', cell: ({ status }) => badge(status) },
          { name: 'Attempts', kind: 'num', cell: ({ attempts }) => attempts },
          { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
        ],
        shown.deliveries,
      )
