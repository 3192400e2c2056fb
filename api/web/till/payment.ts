import { type Jwks, verifyReceipt } from '../../client/verifyReceipt.ts'
import { ask, at } from '../kit/ask.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { live } from '../kit/live.ts'
import { may } from '../kit/role.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { Payment } from '../kit/types.ts'
import { badge, button, copyButton, facts, notice, panel, table, toast } from '../kit/ui.ts'

const REFRESH_MS = 1_000

/** Shows one payment with its receipt. The browser can verify the signature of the receipt. */
export const payment = ofProject('payments', (project, { params, query, signal }) => {
  const path = at`/projects/${project.projectId}/v0/payments/${params[1]!}`
  const isOpen = query.get('show') === 'receipt'
  return [
    h('a', { class: 'back', href: projectLink(project.projectId, 'payments') }, '← Payments'),
    live({
      signal,
      everyMs: REFRESH_MS,
      load: (watching) => ask<Payment>(path, { watching, signal }),
      draw: (shown) => [
        summary(shown),
        receipt(shown, isOpen),
        deliveries(project.projectId, shown),
      ],
    }).element,
    paidHeader(project.projectId, params[1]!),
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
        : ['Reason', [shown.failureMessage, ' ', h('code', {}, shown.failureReason)]],
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

function receipt(shown: Payment, isOpen: boolean): Child {
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
      { 'data-keep': 'receipt', open: isOpen },
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
            cell: ({ deliveryId, event }) =>
              h(
                'a',
                { href: projectLink(projectId, 'webhooks', deliveryId), 'data-keep': deliveryId },
                event,
              ),
          },
          { name: 'State', cell: ({ status }) => badge(status) },
          { name: 'Attempts', kind: 'num', cell: ({ attempts }) => attempts },
          { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
          {
            name: 'Send again',
            kind: 'end',
            cell: ({ deliveryId }) =>
              button('Send again', () => sendAgain(projectId, deliveryId), {
                needs: 'owner',
                keep: `again-${deliveryId}`,
              }),
          },
        ],
        shown.deliveries,
      )

async function sendAgain(projectId: string, deliveryId: string): Promise<void> {
  const path = at`/projects/${projectId}/v0/webhooks/deliveries/${deliveryId}/replay`
  await ask(path, { method: 'POST' })
  toast('Sent again: the same body, signed with the current secret')
}

/**
 * Shows the payment header that the payer sent, for support cases. It appears only on request, because the audit log
 * records who reads it.
 */
function paidHeader(projectId: string, paymentId: string): Child {
  const shown = h('div', { role: 'status' })
  const show = async () => {
    const path = at`/v0/platform/projects/${projectId}/payments/${paymentId}/header`
    const { name, value } = await ask<{ name: string; value: string }>(path)
    shown.replaceChildren(
      h(
        'p',
        {},
        'Rebuilt from the stored authorization and its signature. The rest of the header is not stored, so its text differs.',
      ),
      h('p', {}, h('code', {}, name), ' ', copyButton(value, 'Copy header')),
      h('pre', { class: 'raw', tabindex: 0, role: 'region', 'aria-label': name }, value),
    )
  }
  return may('owner')
    ? panel(
        'For support',
        h(
          'div',
          { class: 'actions' },
          button('Show the header that was paid', show, { needs: 'owner', keep: 'header' }),
        ),
        shown,
      )
    : null
}
