import { ask, at } from '../kit/ask.ts'
import { field, openDialog, showOnce } from '../kit/dialog.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment, short } from '../kit/format.ts'
import { live } from '../kit/live.ts'
import { ofProject, projectLink } from '../kit/screen.ts'
import type { Endpoint, EndpointTrial, PaymentItem, Project } from '../kit/types.ts'
import { badge, button, copyButton, facts, notice, panel, table } from '../kit/ui.ts'

const REFRESH_MS = 1_000
/**
 * Sets after how many milliseconds the user may start a new trial of an endpoint although the last one has not ended.
 * Before this time, the service refuses a new trial.
 */
const LOST_AFTER_MS = 90_000
const PAYMENTS_SHOWN = '5'

const pathOf = (projectId: string, endpointId: string): string =>
  at`/projects/${projectId}/v0/sellers/endpoints/${endpointId}`

const startTrial = (path: string, buy: boolean) =>
  ask<EndpointTrial>(`${path}/trial`, { method: 'POST', body: { buy } })

/**
 * Opens the form in which a seller puts a price on a URL. When the seller submits the form, the page shows the 402
 * response that a buyer of the URL gets.
 */
export const sellSomething = ({ projectId }: Project): void =>
  openDialog({
    title: 'Sell something',
    action: 'Sell it',
    body: [
      field(
        'URL',
        'urlPattern',
        { required: true, type: 'url', maxlength: 2048 },
        'What a buyer calls, without a query. Its server asks for the payment.',
      ),
      field(
        'Price in USDC',
        'priceUsdc',
        { required: true, inputmode: 'decimal' },
        'Such as 0.01.',
      ),
      field('Webhook URL', 'webhookUrl', { type: 'url', maxlength: 2048 }, 'Gets the receipts.'),
    ],
    act: async (form) => {
      const webhookUrl = String(form.get('webhookUrl') ?? '').trim()
      const made = await ask<Endpoint & { webhookSecret?: string }>(
        at`/projects/${projectId}/v0/sellers/endpoints`,
        {
          method: 'PUT',
          body: {
            urlPattern: form.get('urlPattern'),
            priceUsdc: form.get('priceUsdc'),
            ...(webhookUrl === '' ? {} : { webhookUrl }),
          },
        },
      )
      const { endpointId, webhookSecret } = made
      // The service refuses a second trial while a trial of the endpoint runs. The console page then shows the result
      // of the running trial.
      await startTrial(pathOf(projectId, endpointId), false).catch(() => {})
      return () => {
        location.hash = projectLink(projectId, 'endpoints', endpointId)
        if (webhookSecret === undefined) return
        showOnce('Webhook secret', webhookSecret, 'The receiver checks signatures with it.')
      }
    },
  })

type Shown = EndpointTrial & { endpoint: Endpoint; payments: PaymentItem[] }

/** Shows the page of one endpoint, with the 402 response that a buyer gets and the payments that arrive. */
export const endpointTrial = ofProject('endpoints', async ({ projectId }, { params, signal }) => {
  const path = pathOf(projectId, params[1]!)
  const payments = at`/projects/${projectId}/v0/payments?endpointId=${params[1]!}&limit=${PAYMENTS_SHOWN}`
  const shown = live<Shown>({
    signal,
    everyMs: REFRESH_MS,
    load: async (watching) => {
      const asked = { watching, signal }
      const [endpoint, trial, found] = await Promise.all([
        ask<Endpoint>(path, asked),
        ask<EndpointTrial>(`${path}/trial`, asked),
        ask<{ payments: PaymentItem[] }>(payments, asked),
      ])
      return { endpoint, ...trial, payments: found.payments }
    },
    draw: (now) => [
      summary(now.endpoint),
      panel('What a buyer sees', answer(now), actions(now)),
      arrived(projectId, now),
    ],
  })
  function actions({ canBuy, trial }: Shown): HTMLElement {
    const isRunning =
      trial !== null &&
      trial.endedAt === null &&
      Date.now() - Date.parse(trial.createdAt) < LOST_AFTER_MS
    const start = (buy: boolean) => async () => {
      await startTrial(path, buy)
      await shown.refresh()
    }
    const act = (label: string, buy: boolean, kind: 'plain' | 'primary') =>
      button(label, start(buy), { kind, keep: label, needs: 'owner' })
    return h(
      'div',
      { class: 'actions' },
      isRunning ? null : act('Ask again', false, 'plain'),
      isRunning || !canBuy ? null : act('Buy with test money', true, 'primary'),
    )
  }
  return [
    h('a', { class: 'back', href: projectLink(projectId, 'endpoints') }, '← Endpoints'),
    shown.element,
  ]
})

const summary = ({ priceUsdc, urlPattern, verification, webhookUrl }: Endpoint): HTMLElement =>
  panel(
    `${priceUsdc} USDC`,
    facts([
      ['URL', h('code', {}, urlPattern)],
      ['Check', badge(verification.status)],
      ['Webhook', webhookUrl === null ? 'none' : h('code', {}, webhookUrl)],
    ]),
  )

function answer({ trial }: Shown): Child {
  if (trial === null) return h('p', { class: 'note' }, 'Nobody has asked it yet.')
  const { state, challenge, detail, status, body } = trial
  return [
    h(
      'p',
      {},
      badge(state),
      status === null ? null : ` answered ${status} `,
      ' ',
      moment(trial.createdAt),
    ),
    detail === null ? null : notice('bad', detail),
    challenge === null ? null : text('The 402', JSON.stringify(challenge, null, 2)),
    body === null ? null : text('The answer', body),
  ]
}

const text = (label: string, content: string): Child => [
  h('h3', {}, label),
  h('pre', { class: 'raw', tabindex: 0, role: 'region', 'aria-label': label }, content),
]

function arrived(projectId: string, { endpoint, canBuy, payments }: Shown): Child {
  if (payments.length === 0) {
    const command = `curl -i '${endpoint.urlPattern.replaceAll("'", '%27')}'`
    return panel(
      'Waiting for a buyer',
      canBuy
        ? null
        : h('p', {}, 'On a real network a buyer pays with real money. Ask it yourself:'),
      h('pre', { class: 'text command' }, command),
      h(
        'div',
        { class: 'actions' },
        copyButton(command, 'Copy command'),
        copyButton(endpoint.urlPattern, 'Copy link'),
      ),
    )
  }
  return table<PaymentItem>(
    'Payments of this endpoint',
    [
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
        cell: ({ status }) => badge(status === 'verified' ? 'settling' : status),
      },
      { name: 'Transaction', cell: ({ txHash }) => (txHash === null ? '–' : short(txHash)) },
      {
        name: 'Receipt',
        cell: ({ signedReceipt }) => (signedReceipt === null ? '–' : 'signed'),
      },
      {
        name: 'Webhook',
        cell: ({ latestDelivery }) =>
          latestDelivery === null ? 'none' : badge(latestDelivery.status),
      },
      { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
    ],
    payments,
  )
}
