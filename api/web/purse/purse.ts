/**
 * Shows the purse of a project, with its balance, the button that stops the purse, waiting payments, mandates, spending
 * and past payments.
 */
import { AskError, ask, at } from '../kit/ask.ts'
import { openDialog } from '../kit/dialog.ts'
import { type Child, h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { list } from '../kit/list/list.ts'
import { type LiveList, live, readPages } from '../kit/live.ts'
import { plot } from '../kit/plot.ts'
import { ofProject } from '../kit/screen.ts'
import type { Project } from '../kit/types.ts'
import {
  badge,
  button,
  type Column,
  copyButton,
  empty,
  facts,
  notice,
  panel,
  table,
  toast,
} from '../kit/ui.ts'
import { askedPayments } from './askedPayments.ts'
import { limitsDialog } from './limitsDialog.ts'
import { mandateDialog } from './mandateDialog.ts'
import type { AskedPayment, Mandate, Purchase, Purse, Spending } from './types.ts'

const REFRESH_MS = 3_000
const DAYS = 30
const DAY_MS = 24 * 60 * 60 * 1000
/** Sets the maximum number of pages of mandates. The list can be long, because ended mandates stay in it. */
const MANDATE_PAGES_MAX = 100
/** Sets the maximum number of pages of payments that wait for the owner. Each poll reads these pages again. */
const ASKED_PAGES_MAX = 5

type Seen = {
  purse: Purse
  asked: AskedPayment[]
  /** Tells whether more payments wait for the owner's approval than the console shows. */
  moreAsked: boolean
  mandates: Mandate[]
  spending: Spending
}

export const purse = ofProject('purse', (project, { signal }) => {
  const base = at`/v0/platform/projects/${project.projectId}`
  const load = async (watching: boolean): Promise<Seen | null> => {
    const options = { watching, signal }
    try {
      const found = await ask<Purse>(`${base}/purse`, options)
      const [asked, mandates, spending] = await Promise.all([
        readPages<'asked', AskedPayment>(
          { name: 'asked', path: `${base}/purse/asked`, query: { limit: '100' }, signal },
          { pages: ASKED_PAGES_MAX, watching },
        ),
        readPages<'mandates', Mandate>(
          { name: 'mandates', path: `${base}/mandates`, query: { limit: '100' }, signal },
          { pages: MANDATE_PAGES_MAX, watching },
        ),
        ask<Spending>(`${base}/purse/spending?days=${DAYS}`, options),
      ])
      const moreAsked = asked.next !== null
      return { purse: found, asked: asked.items, moreAsked, mandates: mandates.items, spending }
    } catch (error) {
      if (error instanceof AskError && error.status === 404) return null
      throw error
    }
  }
  const top: LiveList = live<Seen | null>({
    signal,
    everyMs: REFRESH_MS,
    load,
    draw: (seen) =>
      seen === null
        ? closed(base, () => top.refresh())
        : drawn(project, base, seen, () => top.refresh()),
  })
  return [
    top.element,
    list<'payments', Purchase>({
      label: 'Purchases',
      name: 'payments',
      signal,
      everyMs: REFRESH_MS,
      path: `${base}/purse/payments`,
      none: () => null,
      columns: PURCHASES,
    }).element,
  ]
})

const closed = (base: string, refresh: () => Promise<void>): Child =>
  empty(
    'No purse',
    'With a purse the agents of this project buy over x402, within the mandates that you give.',
    button(
      'Open purse',
      async () => {
        await ask(`${base}/purse`, { method: 'POST', body: {} })
        await refresh()
      },
      { kind: 'primary', needs: 'owner', keep: 'open-purse' },
    ),
  )

const drawn = (
  project: Project,
  base: string,
  { purse: found, asked, moreAsked, mandates, spending }: Seen,
  refresh: () => Promise<void>,
): Child => [
  found.stoppedAt === null
    ? null
    : notice('bad', 'The purse is stopped: nothing is signed. Open payments are cancelled.'),
  panel(
    null,
    facts([
      ['Address', [h('code', { class: 'long' }, found.address), ' ', copyButton(found.address)]],
      ['Balance', found.balanceUsdc === null ? 'not read yet' : `${found.balanceUsdc} USDC`],
      ['Open', `${found.openUsdc} USDC are signed, and not yet off the balance`],
      ['Free', `${found.freeUsdc} USDC`],
      found.balanceBlock === null ? null : ['Block', `${found.balanceBlock}`],
      found.maxUsdc === null ? null : ['Keeps', `at most ${found.maxUsdc} USDC`],
      ['The rest goes to', payoutText(found)],
    ]),
    h(
      'div',
      { class: 'actions' },
      button('Limits', () => limitsDialog(base, found, refresh), {
        needs: 'owner',
        keep: 'purse-limits',
      }),
      stopButton(base, found, refresh),
    ),
  ),
  asked.length === 0 ? null : askedPayments(base, asked, refresh),
  moreAsked ? notice('wait', 'Older payments wait too. They appear here after these.') : null,
  mandateTable(project, base, mandates, refresh),
  spendingPanel(spending),
]

function payoutText({ payout: { address, next } }: Purse): Child {
  const now = address ?? 'nobody'
  return next === null ? now : [now, '; from ', moment(next.from), ` on to ${next.address}`]
}

const stopButton = (base: string, { stoppedAt }: Purse, refresh: () => Promise<void>) =>
  stoppedAt === null
    ? button(
        'Stop the purse',
        () =>
          openDialog({
            title: 'Stop the purse?',
            action: 'Stop',
            danger: true,
            body: h(
              'p',
              {},
              'Nothing more is signed. What is signed and unused is cancelled on the chain.',
            ),
            act: async () => {
              await ask(`${base}/purse/stop`, { method: 'POST' })
              await refresh()
              return () => toast('The purse is stopped')
            },
          }),
        { kind: 'danger', needs: 'owner', keep: 'stop-purse' },
      )
    : button(
        'Let it sign again',
        async () => {
          await ask(`${base}/purse/resume`, { method: 'POST' })
          await refresh()
        },
        { needs: 'owner', keep: 'resume-purse' },
      )

const sums = ({ maxPerHour, maxPerDay, maxPerMonth, maxTotal }: Mandate): string =>
  [
    maxPerHour === null ? null : `${maxPerHour} an hour`,
    maxPerDay === null ? null : `${maxPerDay} a day`,
    maxPerMonth === null ? null : `${maxPerMonth} a month`,
    maxTotal === null ? null : `${maxTotal} in all`,
  ]
    .filter((part) => part !== null)
    .join(', ')

function mandateTable(
  project: Project,
  base: string,
  mandates: readonly Mandate[],
  refresh: () => Promise<void>,
): Child {
  const given = mandates.filter(({ state }) => state !== 'ended')
  const patch = (mandate: Mandate, body: object) => async () => {
    await ask(`${base}/mandates/${mandate.mandateId}`, { method: 'PATCH', body })
    await refresh()
  }
  const actions = (mandate: Mandate) =>
    h(
      'div',
      { class: 'actions' },
      button('Change', () => mandateDialog(project, mandate, refresh), {
        needs: 'owner',
        keep: `change ${mandate.mandateId}`,
        label: `Change ${mandate.name}`,
      }),
      mandate.state === 'active'
        ? button('Stop', patch(mandate, { state: 'stopped' }), {
            kind: 'danger',
            needs: 'owner',
            keep: `stop ${mandate.mandateId}`,
            label: `Stop ${mandate.name}`,
          })
        : button('Resume', patch(mandate, { state: 'active' }), {
            needs: 'owner',
            keep: `resume ${mandate.mandateId}`,
            label: `Resume ${mandate.name}`,
          }),
      button(
        'End',
        async () => {
          await ask(`${base}/mandates/${mandate.mandateId}`, { method: 'DELETE' })
          await refresh()
        },
        { needs: 'owner', keep: `end ${mandate.mandateId}`, label: `End ${mandate.name}` },
      ),
    )
  return [
    h(
      'div',
      { class: 'actions' },
      button('Give a mandate', () => mandateDialog(project, null, refresh), {
        kind: 'primary',
        needs: 'owner',
        keep: 'give-mandate',
      }),
    ),
    given.length === 0
      ? notice('wait', 'Without a mandate nothing is paid.')
      : table(
          'Mandates',
          [
            {
              name: 'Name',
              kind: 'main',
              cell: ({ name, hosts, resources }) => [
                name,
                h('p', { class: 'note' }, [...hosts, ...resources].join(', ')),
              ],
            },
            { name: 'State', cell: ({ state }) => badge(state) },
            {
              name: 'One payment',
              kind: 'num',
              cell: ({ maxPerPayment }) => `${maxPerPayment} USDC`,
            },
            { name: 'Sums in USDC', cell: sums },
            {
              name: 'Used',
              kind: 'num',
              cell: ({ spentUsdc, openUsdc }) => [
                `${spentUsdc} USDC`,
                openUsdc === '0' ? null : h('p', { class: 'note' }, `${openUsdc} open`),
              ],
            },
            { name: 'Action', kind: 'end', cell: actions },
          ],
          given,
        ),
  ]
}

function spendingPanel({ byDay, byHost }: Spending): Child {
  if (byDay.length === 0) return null
  const amounts = new Map(byDay.map(({ day, amountUsdcRaw }) => [day, Number(amountUsdcRaw)]))
  const values = Array.from({ length: DAYS }, (_, n) => {
    const day = new Date(Date.now() - (DAYS - 1 - n) * DAY_MS).toISOString().slice(0, 10)
    return amounts.get(day) ?? 0
  })
  return panel(
    `Spent in the last ${DAYS} days (UTC)`,
    plot(`Spending of the last ${DAYS} days`, [{ tone: 'main', values }]),
    table(
      'By host',
      [
        { name: 'Host', kind: 'main', cell: ({ host }) => host },
        { name: 'Payments', kind: 'num', cell: ({ count }) => `${count}` },
        { name: 'Sum', kind: 'num', cell: ({ amountUsdc }) => `${amountUsdc} USDC` },
        {
          name: 'Paid without content',
          kind: 'num',
          cell: ({ withoutContent }) => `${withoutContent}`,
        },
      ],
      byHost,
    ),
  )
}

const PURCHASES: Column<Purchase>[] = [
  {
    name: 'Request',
    kind: 'main',
    cell: ({ method, host, path, why }) => [
      h('code', {}, `${method} ${host}${path}`),
      why === null ? null : h('p', { class: 'note', dir: 'auto' }, `Agent: ${why}`),
    ],
  },
  {
    name: 'Price',
    kind: 'num',
    cell: ({ terms }) => (terms === null ? '–' : `${terms.amountUsdc} USDC`),
  },
  { name: 'State', cell: ({ state, reason }) => badge(state, reason ?? state) },
  {
    name: 'Money',
    cell: ({ payment }) => [
      payment === null ? 'not signed' : badge(payment.state),
      payment?.paidWithoutContent ? h('p', { class: 'note' }, 'no content came') : null,
    ],
  },
  { name: 'When', cell: ({ createdAt }) => moment(createdAt) },
]
