/**
 * Reads the pictures of an HTML part. The approval page and the frame of a mail both use this reader, so that the owner
 * sees the same pictures as the recipients.
 */
import { readHtml } from '../visibleText/htmlTokens.ts'

/** Lists the media types of the pictures that the frame of a mail draws. Mail programs also write `image/jpg`. */
export const DRAWN_TYPES = ['image/png', 'image/jpeg', 'image/jpg', 'image/gif', 'image/webp']

/**
 * Describes the address of a picture. With `cid`, an attachment with this Content-ID holds the picture (RFC 2392). The
 * field `isPlain` is false if the address contains a percent code, which some mail programs do not decode. With `data`,
 * the address itself holds the picture.
 */
export type PictureSource =
  | { kind: 'cid'; id: string; isPlain: boolean }
  | { kind: 'data' }
  | { kind: 'other' }

/**
 * Describes a `src` attribute. Only the first `src` of an element counts. For every other `src` of the element,
 * `isFirst` is false.
 */
export type Shown = { element: string; isFirst: boolean; source: PictureSource }

/** Returns all `src` attributes of an HTML part in their order. */
export function shownSources(html: string): Shown[] {
  const shown: Shown[] = []
  let element = ''
  let isFirst = true
  readHtml(html, {
    name(name) {
      element = name
      isFirst = true
    },
    attribute(name, value) {
      if (name !== 'src') return
      shown.push({ element, isFirst, source: sourceOf(value) })
      isFirst = false
    },
  })
  return shown
}

/** Reads the value of a `src` attribute as the HTML source writes it, with its entities. */
export function readSource(written: string): PictureSource {
  let source: PictureSource = { kind: 'other' }
  readHtml(`<img src="${written.replaceAll('"', '&quot;')}">`, {
    attribute(_name, value) {
      source = sourceOf(value)
    },
  })
  return source
}

/** Matches a URL without the blanks around it, which a browser removes. */
const URL_WORDS = /^[\t\n\f\r ]*(?:(cid:)([^\t\n\f\r ]*)[\t\n\f\r ]*$|data:image\/)/i

function sourceOf(value: string): PictureSource {
  const match = URL_WORDS.exec(value)
  if (match === null) return { kind: 'other' }
  const [, cid, id = ''] = match
  return cid === undefined
    ? { kind: 'data' }
    : { kind: 'cid', id: decoded(id), isPlain: !id.includes('%') }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
