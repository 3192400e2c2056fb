import { ask } from '../kit/ask.ts'
import { openDialog, textArea } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { moment } from '../kit/format.ts'
import { button, facts, table, toast } from '../kit/ui.ts'
import type { AskedPayment } from './types.ts'

const WHY: Record<AskedPayment['askedFor'], string> = {
  above_limit: 'The price is above the sum that you want to see.',
  new_payee: 'The host asks for a payment to an address that it never named before.',
  price_rose: 'The price rose by more than the mandate allows.',
}

/** Shows the payments that wait for the owner's approval, with the buttons for the decision. */
export const askedPayments = (
  base: string,
  asked: readonly AskedPayment[],
  refresh: () => Promise<void>,
): HTMLElement =>
  table(
    'Payments that wait for you',
    [
      {
        name: 'Host',
        kind: 'main',
        cell: ({ purchase, askedFor }) => [purchase.host, h('p', { class: 'note' }, WHY[askedFor])],
      },
      {
        name: 'Amount',
        kind: 'num',
        cell: ({ purchase }) => `${purchase.terms?.amountUsdc ?? '–'} USDC`,
      },
      { name: 'Expires', cell: ({ expiresAt }) => moment(expiresAt) },
      {
        name: 'Action',
        kind: 'end',
        cell: (one) =>
          button('Decide', () => decide(base, one.approvalId, refresh), {
            kind: 'primary',
            needs: 'owner',
            keep: `decide ${one.approvalId}`,
            label: `Decide about ${one.purchase.host}`,
          }),
      },
    ],
    asked,
  )

const linesOf = (headers: Record<string, string>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n') || 'none'

/** Matches characters that a person does not see, or that change the order of the characters around them. */
const UNSEEN = /[\p{Cf}\p{Zl}\p{Zp}]|(?![\n\t])\p{Cc}/gu

/** Makes the invisible characters in a text of the agent or of the seller visible. */
const shown = (text: string): string =>
  text.replace(
    UNSEEN,
    (sign) => `⟨U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )

/**
 * Shows all terms of the payment that the service would sign, and the buttons for the decision. The console shows which
 * texts come from the agent or the seller.
 */
async function decide(
  base: string,
  approvalId: string,
  refresh: () => Promise<void>,
): Promise<void> {
  const path = `${base}/purse/asked/${approvalId}`
  const { askedFor, purchase, request, sha256 } = await ask<AskedPayment>(path)
  const { terms } = purchase
  const choose = (label: string, value: string, checked: boolean) =>
    h(
      'label',
      { class: 'check' },
      h('input', { type: 'radio', name: 'decision', value, required: true, checked }),
      ' ',
      label,
    )
  openDialog({
    title: 'A payment waits for you',
    action: 'Decide',
    body: [
      h('p', {}, WHY[askedFor]),
      facts([
        ['Amount', `${terms?.amountUsdc ?? '–'} USDC`],
        ['Host', purchase.host],
        ['Request', shown(`${purchase.method} ${request?.url ?? purchase.path}`)],
        ['Headers of the request', shown(linesOf(request?.headers ?? {}))],
        ['Body of the request', shown(request?.body ?? 'none')],
        ['Tool, chosen by the agent', shown(purchase.tool ?? 'none')],
        ['Credential that the request uses', purchase.credential ?? 'none'],
        ['Payee', h('code', { class: 'long' }, terms?.payTo ?? '–')],
        ['Chain', terms?.network ?? '–'],
        ['Seller’s resource', shown(terms?.resource ?? 'none')],
        ['Seller’s description', shown(terms?.description ?? 'none')],
        ['Agent’s words', shown(purchase.why ?? 'none')],
      ]),
      h(
        'fieldset',
        { class: 'field' },
        h('legend', {}, 'Decision'),
        choose('Pay: only these terms are signed', 'approve', false),
        choose('Reject', 'reject', false),
      ),
      textArea('Reason for a rejection', 'reason', { rows: 2, maxlength: 1_000 }),
    ],
    act: async (form) => {
      const isApproved = form.get('decision') === 'approve'
      const reason = String(form.get('reason') ?? '').trim()
      const body = isApproved ? { sha256 } : reason === '' ? {} : { reason }
      await ask(`${path}/${isApproved ? 'approve' : 'reject'}`, { method: 'POST', body })
      await refresh()
      return () => toast(isApproved ? 'The seller is asked anew' : 'Rejected')
    },
  })
}
