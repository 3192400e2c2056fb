import type { Static } from '@sinclair/typebox'
import { htmlToText } from '../../shared/mail/htmlToText.ts'
import type { HeldRequest } from '../mail/heldView.ts'
import { REASON_MAX_LENGTH } from '../mail/heldView.ts'

type Held = Static<typeof HeldRequest>

const escaped = (text: string): string =>
  text.replace(
    /[&<>"']/g,
    (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[sign]!,
  )

const frame = (title: string, body: string): string => `<!doctype html>
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

/** A page that only tells an end. */
export const endHtml = (title: string, text: string): string =>
  frame(title, `<p>${escaped(text)}</p>`)

/** Characters of an HTML part that are read. */
const HTML_READ_CHARS = 200_000

/** The words of the HTML part: most recipients read these, and they may differ from the plain text. */
const htmlWords = (html: string): string =>
  `<h2>HTML part</h2><p class="note">Most recipients see this part. The console shows it as they do.</p>
<pre class="text" dir="auto" tabindex="0" role="region" aria-label="Words of the HTML part">${escaped(htmlToText(html.slice(0, HTML_READ_CHARS)))}</pre>`

/** The letter and the form that decides. Of its HTML part the words are shown. */
export function approvalHtml({
  held,
  message,
  sha256,
  note,
}: {
  held: Held
  message: NonNullable<Held['message']>
  sha256: string
  note: string | undefined
}): string {
  const fact = (name: string, value: string) =>
    value === '' ? '' : `<div><dt>${name}</dt><dd dir="auto">${escaped(value)}</dd></div>`
  const files = message.attachments.map(({ filename, size }) => `${filename} (${size} bytes)`)
  return frame(
    'A mail waits for you',
    `${note === undefined ? '' : `<p class="notice bad" role="alert">${escaped(note)}</p>`}
<section class="panel" aria-label="The mail"><dl class="facts">
${fact('From', message.from.join(', '))}
${fact('To', message.to.join(', '))}
${fact('Cc', message.cc.join(', '))}
${fact('Bcc', message.bcc.join(', '))}
${fact('Subject', message.subject)}
${fact('Attachments', files.join(', '))}
${fact('Leaves at', message.sendAt ?? '')}
${fact('Expires', held.expiresAt)}
</dl>
<pre class="text" dir="auto" tabindex="0" role="region" aria-label="Text of the mail">${escaped(message.text)}</pre>
${message.html === null ? '' : htmlWords(message.html)}
<p class="note">SHA-256 of its bytes: <code>${sha256}</code></p>
</section>
<form method="post" class="panel"><input type="hidden" name="sha256" value="${sha256}">
<div class="field"><label for="reason">Reason for a rejection</label>
<textarea id="reason" name="reason" rows="3" maxlength="${REASON_MAX_LENGTH}"></textarea></div>
<div class="actions"><button name="decision" value="approve" class="button primary">Approve and send</button>
<button name="decision" value="reject" class="button danger">Reject</button></div>
</form>`,
  )
}
