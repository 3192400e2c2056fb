/** Makes the HTML page that tells the price to a browser. A program gets the same refusal as JSON. */
import type { Challenge } from '../calls/payments.ts'

/**
 * Sets the maximum number of characters of an Accept header that the paywall reads. For a longer header, the response
 * is JSON.
 */
const ACCEPT_MAX_CHARS = 1_024

/**
 * Tells whether an Accept header prefers HTML to JSON (RFC 9110 §12.5.1). Browsers name `text/html` in this header, but
 * programs send a wildcard.
 */
export function prefersHtml(accept: string | null | undefined): boolean {
  if (!accept || accept.length > ACCEPT_MAX_CHARS) return false
  const quality = new Map<string, number>()
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    quality.set(type, weight === undefined ? 1 : Number(weight.slice(2)) || 0)
  }
  return (quality.get('text/html') ?? 0) > (quality.get('application/json') ?? 0)
}

const STYLE =
  ':root{color-scheme:light dark}body{font:16px/1.55 system-ui,sans-serif;margin:4rem auto;max-width:38rem;padding:0 1.25rem}' +
  'dt{font-weight:600;margin-top:1rem}dd{margin:0;overflow-wrap:anywhere}'

/**
 * Returns the headers of a paywall page. They forbid the page to run a script, to load a resource, and to appear in a
 * frame.
 */
export async function pageHeaders(): Promise<Record<string, string>> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(STYLE))
  const hash = btoa(String.fromCharCode(...new Uint8Array(digest)))
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  }
}

/** Describes the price offer that a paywall page shows. */
export type ShownOffer = {
  /** Holds the price of the payment offer in decimal USDC. */
  amount: string
  challenge: Omit<Challenge, 'headers'>
}

/** Returns the HTML page that shows the price of a paywall's offer. */
export function offerPage({ amount, challenge }: ShownOffer): string {
  const [requirement] = challenge.accepts
  if (requirement === undefined) return notePage(challenge.error)
  const { resource, description, network, payTo } = requirement
  const facts = [
    ['Price', `${amount} USDC`],
    ['Resource', resource],
    ['Description', description],
    ['Network', network],
    ['Paid to', payTo],
    ['State', challenge.error],
  ]
    .filter(([, text]) => text !== '')
    .map(([term = '', text = '']) => `<dt>${term}</dt><dd>${escapeHtml(text)}</dd>`)
  return page(`<dl>
${facts.join('\n')}
</dl>
<h2>How to pay</h2>
<p>This resource is sold to software agents over x402. An agent signs the offer with its wallet. It sends the same
request again, with the signature in the header <code>PAYMENT-SIGNATURE</code> (version 2) or <code>X-PAYMENT</code>
(version 1). The offer stands in the header <code>PAYMENT-REQUIRED</code>, and as JSON in the answer to a program.</p>`)
}

/** Returns the HTML page of a paywall's refusal that offers no price. */
export const notePage = (message: string): string => page(`<p>${escapeHtml(message)}</p>`)

const page = (content: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Payment required</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Payment required</h1>
${content}
</main>
</body>
</html>
`

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? '')
