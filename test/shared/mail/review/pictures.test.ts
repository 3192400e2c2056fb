/** Tests that the owner sees the pictures of a mail that its recipients see. */
import { describe, expect, test } from 'bun:test'
import { framedHtml } from '../../../../api/console/approval/framedHtml.ts'
import { htmlObstacles } from '../../../../shared/mail/review/obstacles.ts'

const UNDRAWN = 'the HTML part has a picture that this page cannot draw'
const DATA = 'data:image/png;base64,AA'

/**
 * Returns the reasons why the approval page cannot show an HTML part (its obstacles), and the attachments and `data:`
 * URLs that the frame draws in `img` elements.
 */
function seen(html: string, ids = ['x'], contentType = 'image/png') {
  const images = ids.map((contentId) => ({ contentId, contentType, bytes: Buffer.from(contentId) }))
  const drawn = framedHtml({ html, images }).matchAll(/<img.*?\ssrc="\s*data:[^,]*,([^"]*)"/g)
  return {
    obstacles: htmlObstacles(
      html,
      images.map(({ bytes, ...image }) => ({ ...image, size: bytes.length })),
    ),
    drawn: [...drawn].map(([, content]) =>
      content === 'AA' ? 'data' : Buffer.from(content!, 'base64').toString(),
    ),
  }
}

describe('the frame of the approval page draws each picture unless the page reports the picture as an obstacle to the approval', () => {
  test.each([
    ...[
      'src="cid:x"',
      "src='CID:x'",
      'src=cid:x',
      'src=" cid:x"',
      'src="cid:x "',
      'src="\n cid:x"',
    ],
    ...['src="cid:&#120;"', 'src="cid&#58;x"', 'alt="a > b" src="cid:x"'],
  ])('for <img %s>', (attribute) => {
    const { obstacles, drawn } = seen(`<p>See</p><img ${attribute}>`)
    expect([drawn, obstacles.includes(UNDRAWN)]).toEqual([['x'], false])
  })

  test.each([`src="${DATA}"`, `src=" ${DATA}"`, `src="\n${DATA}"`])('for <img %s>', (attribute) => {
    expect(seen(`<img ${attribute}>`)).toEqual({ obstacles: [], drawn: ['data'] })
  })

  test.each(['image/png', 'image/jpeg', 'image/jpg', 'IMAGE/gif', 'image/webp'])(
    'the media type of the picture may be %s',
    (type) => {
      expect(seen('<img src="cid:x">', ['x'], type.toLowerCase())).toEqual({
        obstacles: [],
        drawn: ['x'],
      })
    },
  )
})

describe('the approval page does not let the owner approve a picture that it does not draw', () => {
  test.each([
    '<input type="image" src="cid:x">',
    `<input type="image" src="${DATA}">`,
    '<v:imagedata src="cid:x">',
    '<v:fill src="cid:x"/>',
    '<img src="cid:x" src="cid:x">',
    '<!-- <img src="cid:x"> -->',
    '<textarea><img src="cid:x"></textarea>',
    '<img src="\u00a0cid:x">',
    '<img src="cid:%78">',
  ])('for %s', (html) => {
    expect(seen(`<p>See</p>${html}`).obstacles).toEqual([UNDRAWN])
  })

  test('the approval page reads a Content-ID after the decoding of entities, as a mail program does', () => {
    expect(seen('<img src="cid:a&#98;">', ['a&#98;', 'ab'])).toEqual({
      obstacles: [],
      drawn: ['ab'],
    })
  })

  test('the owner cannot approve a picture whose Content-ID mail programs read in different ways', () => {
    expect(seen('<img src="cid:a%62">', ['a%62', 'ab']).obstacles).toEqual([UNDRAWN])
    expect(seen('<img src="cid:A">', ['A', 'a']).obstacles).toEqual([UNDRAWN])
    expect(seen('<img src="cid:A">', ['a']).obstacles).toEqual([UNDRAWN])
  })
})
