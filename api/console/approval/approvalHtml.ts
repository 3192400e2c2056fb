import type { Section } from '../../../shared/mail/review/review.ts'
import { shownText } from '../../../shared/mail/review/shownText.ts'
import { escaped, pageHtml } from '../../http/personPage.ts'
import { REASON_MAX_LENGTH } from '../../mail/approval/heldDocs.ts'
import type { ReviewPage } from '../../mail/approval/heldReview.ts'
import type { readAskedPayment } from '../../purse/askedRoutes.ts'

const sectionHtml = ({ title, note, pieces }: Section): string => {
  const words = pieces.map(({ text, mark }) =>
    mark === undefined ? escaped(text) : `<mark title="${escaped(mark)}">${escaped(text)}</mark>`,
  )
  return `<h2>${escaped(title)}</h2>${note === undefined ? '' : `<p class="note">${escaped(note)}</p>`}
<pre class="text" dir="auto" tabindex="0" role="region" aria-label="${escaped(title)}">${words.join('')}</pre>`
}

/** Shows the HTML part of a mail as a browser renders it, in a sandbox without scripts and network. */
const FRAME = `<h2>HTML part as a browser draws it</h2>
<iframe class="mail" sandbox="" src="?view=html" title="HTML part of the mail" referrerpolicy="no-referrer"></iframe>`

/**
 * Returns the HTML page that shows a held mail (a mail that waits for approval) and the actions that the owner may
 * choose.
 */
export function approvalHtml({
  review,
  expiresAt,
  note,
}: {
  review: ReviewPage
  expiresAt: string
  note: string | undefined
}): string {
  const { page, pages, sections, obstacles, seal, sha256 } = review
  const canApprove = page === pages && obstacles.length === 0
  const actions = [
    canApprove
      ? '<button name="decision" value="approve" class="button primary">Approve and send</button>'
      : '',
    '<button name="decision" value="reject" class="button danger">Reject</button>',
  ]
  return pageHtml(
    'A mail waits for you',
    `${note === undefined ? '' : `<p class="notice bad" role="alert">${escaped(note)}</p>`}
${obstacles.length === 0 ? '' : obstacleHtml(obstacles)}
<section class="panel" aria-label="The mail">
<p class="note">Page ${page} of ${pages}. This request ends at ${escaped(expiresAt)}. SHA-256 of the mail: <code>${sha256}</code></p>
${page === 1 && review.hasHtml ? FRAME : ''}
${sections.map(sectionHtml).join('\n')}
</section>
${page === pages ? '' : `<p><a class="button primary" href="?page=${page + 1}&amp;seen=${seal}">Read page ${page + 1} of ${pages}</a></p>`}
<form method="post" class="panel"><input type="hidden" name="sha256" value="${sha256}"><input type="hidden" name="seen" value="${seal}">
<div class="field"><label for="reason">Reason for a rejection</label>
<textarea id="reason" name="reason" rows="3" maxlength="${REASON_MAX_LENGTH}"></textarea></div>
${canApprove ? TRUST : ''}
<div class="actions">${actions.join('\n')}</div>
</form>`,
  )
}

/**
 * Holds the checkbox with which the owner allows later mail to the same recipients without an approval. It has an
 * effect only under the policy `approve-new`, under which only mail to new recipients waits.
 */
const TRUST = `<label class="check"><input type="checkbox" name="trust" value="recipients" checked> Under the policy approve-new, later mail to these recipients, also to those of Bcc, leaves without your approval</label>`

const obstacleHtml = (obstacles: readonly string[]): string =>
  `<div class="notice bad" role="alert"><p>This mail cannot be approved here, because it cannot be shown whole:</p>
<ul>${obstacles.map((one) => `<li>${escaped(one)}</li>`).join('')}</ul>
<p>Reject it, edit it in the console, or read its bytes and approve them with a platform key.</p></div>`

const WHY: Record<string, string> = {
  above_limit: 'The price is above the sum that you want to see.',
  new_payee: 'The host asks for a payment to an address that it never named before.',
  price_rose: 'The price rose by more than the mandate allows.',
}

/** Returns the headers of a request in lines, for a person. */
const headersOf = (headers: Record<string, string>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n') || 'none'

/**
 * Returns the HTML page that shows a payment waiting for the owner's approval. The page shows which texts the seller or
 * the agent wrote.
 */
export function paymentHtml({
  asked,
  note,
}: {
  asked: Awaited<ReturnType<typeof readAskedPayment>>
  note: string | undefined
}): string {
  const { purchase, request, sha256, askedFor, expiresAt } = asked
  const { terms } = purchase
  const rows: [string, string][] = [
    ['Amount', `${terms?.amountUsdc} USDC`],
    ['Host', purchase.host],
    ['Request', `${purchase.method} ${request?.url ?? purchase.path}`],
    ['Headers of the request', headersOf(request?.headers ?? {})],
    ['Body of the request', request?.body ?? 'none'],
    ['Tool, chosen by the agent', purchase.tool ?? 'none'],
    ['Credential that the request uses', purchase.credential ?? 'none'],
    ['Payee', terms?.payTo ?? ''],
    ['Chain', terms?.network ?? ''],
    ['Resource, in the words of the seller', terms?.resource ?? 'none'],
    ['Description, in the words of the seller', terms?.description ?? 'none'],
    ['Reason, in the words of the agent', purchase.why ?? 'none'],
  ]
  return pageHtml(
    'A payment waits for you',
    `${note === undefined ? '' : `<p class="notice bad" role="alert">${escaped(note)}</p>`}
<section class="panel" aria-label="The payment">
<p>${escaped(WHY[askedFor] ?? askedFor)}</p>
<dl>${rows.map(([name, value]) => `<dt>${escaped(name)}</dt><dd dir="auto">${escaped(shownText(value))}</dd>`).join('\n')}</dl>
<p class="note">This request ends at ${escaped(expiresAt)}. After your approval the seller is asked anew, and only these terms are signed.</p>
</section>
<form method="post" class="panel"><input type="hidden" name="sha256" value="${sha256}">
<div class="field"><label for="reason">Reason for a rejection</label>
<textarea id="reason" name="reason" rows="3" maxlength="${REASON_MAX_LENGTH}"></textarea></div>
<div class="actions"><button name="decision" value="approve" class="button primary">Approve and pay</button>
<button name="decision" value="reject" class="button danger">Reject</button></div>
</form>`,
  )
}
