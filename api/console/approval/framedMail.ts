import { framedHtml } from './framedHtml.ts'

/**
 * Sets the Content-Security-Policy of a mail in a frame. The Content-Security-Policy of a mail in a frame forbids
 * scripts, loading and form submission, and gives the frame an opaque origin. The console page's `frame-src` keeps the
 * frame from navigating to other sites.
 */
const MAIL_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'self'; sandbox"

/** Returns the HTTP response with the HTML of a mail, which the approval page shows in a frame. */
export const framedMail = (mail: Parameters<typeof framedHtml>[0]): Response =>
  new Response(framedHtml(mail), {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': MAIL_POLICY,
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-dns-prefetch-control': 'off',
      'cross-origin-resource-policy': 'same-origin',
    },
  })
