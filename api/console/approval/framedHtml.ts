import { PICTURES_MAX_CHARS } from '../../../shared/mail/review/obstacles.ts'
import { readSource } from '../../../shared/mail/review/pictures.ts'
import { DRAWN_HTML_MAX_CHARS, type InlineImage } from '../../../sql/mail/messages/messageHtml.ts'

/**
 * Lists the HTML elements that load resources, navigate, submit forms or run scripts. The sandbox and the
 * Content-Security-Policy of the frame already forbid these actions. Some browsers look up a host name or connect
 * before they check the policy. Therefore the service also removes these elements from the mail. A frame without scripts
 * draws the content of `noscript`, but HTMLRewriter reads this content as text, and would clean nothing in it.
 */
const REMOVED =
  'script, iframe, frame, frameset, object, embed, applet, link, meta, base, form, portal, audio, video, source, template, noscript'

const REMOVED_ATTRIBUTE = /^(on|href$|xlink:|srcset|ping|background|poster|action|formaction)/

/**
 * Sets the style of a mail in a frame, because mails expect dark text on a white page, even when the console is dark.
 */
const PAGE_STYLE =
  'html{color-scheme:light}body{margin:12px;background:#fff;color:#111;font:15px/1.5 system-ui,sans-serif;' +
  'overflow-wrap:anywhere}img{max-width:100%;height:auto}'

const page = (body: string): string =>
  `<!doctype html><html lang="und"><head><meta charset="utf-8"><title>Message</title><style>${PAGE_STYLE}</style></head><body>${body}</body></html>`

/**
 * Returns the HTML of a mail with its inline images as a page, which the console shows in a frame. A remote image is
 * replaced by its alt text. If the images are too large together, the page shows only the first ones. HTML that is too
 * long is replaced by a sentence.
 */
export function framedHtml({ html, images }: { html: string; images: InlineImage[] }): string {
  if (html.length > DRAWN_HTML_MAX_CHARS) {
    return page(
      '<p>The HTML of this mail is too long for this page. Read the text, or save the mail.</p>',
    )
  }
  let room = PICTURES_MAX_CHARS
  const carried = new Map(
    images.map(({ contentId, contentType, bytes }) => [
      contentId.replace(/^<|>$/g, ''),
      `data:${contentType};base64,${Buffer.from(bytes).toString('base64')}`,
    ]),
  )
  const cleaned = new HTMLRewriter()
    .on(REMOVED, {
      element(element) {
        element.remove()
      },
    })
    .on('*', {
      element(element) {
        // The sandbox of the frame opens no link, so the title of each link shows the link's target.
        const href = element.getAttribute('href')
        for (const name of [...element.attributes].map(([attribute]) => attribute)) {
          if (REMOVED_ATTRIBUTE.test(name) || (name === 'src' && element.tagName !== 'img'))
            element.removeAttribute(name)
        }
        if (href !== null && element.tagName === 'a') element.setAttribute('title', href)
      },
    })
    .on('img', {
      element(element) {
        const source = readSource(element.getAttribute('src') ?? '')
        const own = source.kind === 'cid' ? carried.get(source.id) : undefined
        if (own !== undefined && own.length <= room) {
          room -= own.length
          element.setAttribute('src', own)
        } else if (source.kind !== 'data') {
          // The loop removes every attribute of this name, because the browser would otherwise use a second one.
          while (element.hasAttribute('src')) element.removeAttribute('src')
        }
      },
    })
    .transform(html)
  return page(cleaned)
}
