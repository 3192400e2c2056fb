/** Builds the plain HTML pages that a person opens without the console, such as the page behind a link in a mail. */
import { PAGE_HEADERS } from './asset.ts'
import type { ApiError } from './errors.ts'

/** Replaces the characters that have a meaning in HTML by character references. */
export const escaped = (text: string): string =>
  text.replace(
    /[&<>"']/g,
    (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[sign]!,
  )

/** Returns a whole HTML page with a title and the HTML of its body. */
export const pageHtml = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex, nofollow">
<title>${escaped(title)} – Purser</title>
<link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/console/assets/style.css">
</head>
<body><main class="approval"><h1>${escaped(title)}</h1>
${body}
</main></body>
</html>
`

/** Returns an HTML page that has only a title and one sentence or two. */
export const sayingHtml = (title: string, text: string): string =>
  pageHtml(title, `<p>${escaped(text)}</p>`)

/**
 * Sets the Content-Security-Policy of the pages that a person opens without the console. Such a page may hold text of
 * unauthenticated senders. Therefore it loads only its style and runs no script.
 */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  // A page for a person may show the HTML part of a mail in a frame. This frame has its own Content-Security-Policy,
  // without scripts and network.
  "frame-src 'self'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Returns the HTTP response with a page for a person. Caches must not store the page, because its link may be a secret.
 */
export const personPage = (
  html: string,
  status = 200,
  headers: Record<string, string> = {},
): Response =>
  new Response(html, {
    status,
    headers: {
      ...PAGE_HEADERS,
      ...headers,
      'content-security-policy': POLICY,
      'cache-control': 'no-store',
      'x-robots-tag': 'noindex, nofollow',
    },
  })

/** Returns the page that shows an error to a person. An API client gets the same error as JSON. */
export function errorPersonPage({ status, message, headers }: ApiError): Response {
  const isTemporary = status === 429 || status === 503
  const title = isTemporary ? 'Please wait' : 'This page cannot be shown'
  const advice = isTemporary ? ' Open the page again in a minute.' : ''
  return personPage(sayingHtml(title, `${message}.${advice}`), status, headers)
}
