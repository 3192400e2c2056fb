/** Tests which link in a calendar event counts as the link to the event's online meeting. */
import { describe, expect, test } from 'bun:test'
import { meetingLink } from '../../../../shared/mail/calendar/meetingLink.ts'

const ROOM = 'https://meet.google.com/abc-defg-hij'
const inText = (...texts: string[]) => meetingLink([], texts)

describe('if a calendar field contains only a link, this link is the meeting link', () => {
  test('a calendar field that contains only a link is the meeting link, and the link may name any host', () => {
    expect(meetingLink([' https://rooms.example/7 '], [ROOM])).toBe('https://rooms.example/7')
  })

  test('a calendar field that is empty or no https URL is not the meeting link, so the service checks the next field', () => {
    const other = 'https://rooms.example/8'
    for (const given of ['', 'Room 7', 'http://rooms.example/7', 'javascript:alert(1)']) {
      expect(meetingLink([given, other], [])).toBe(other)
      expect(meetingLink([given], [])).toBeNull()
    }
  })

  test('a calendar field that contains only a link is preferred to the fields after it and to links inside texts', () => {
    expect(meetingLink(['https://a.example/', 'https://b.example/'], [ROOM])).toBe(
      'https://a.example/',
    )
  })

  test('a meeting link in a calendar field has at most 2000 characters', () => {
    const longest = `https://a.example/${'x'.repeat(1_982)}`
    expect(meetingLink([longest], [])).toBe(longest)
    expect(meetingLink([`${longest}x`], [])).toBeNull()
  })
})

describe('a link inside a calendar text is the meeting link if it leads to a known meeting service', () => {
  test.each([
    ROOM,
    'https://teams.microsoft.com/l/1',
    'https://teams.live.com/meet/1',
    'https://whereby.com/room',
    'https://team.whereby.com/room',
    'https://meet.jit.si/Room',
    'https://bluejeans.com/1',
    'https://chime.aws/1',
    'https://around.co/r/1',
    'https://zoom.us/j/1',
    'https://us02-web.zoom.us/j/1?pwd=2',
    'https://agency.zoomgov.com/j/1',
    'https://a.webex.com/meet/b',
    'https://global.gotomeeting.com/join/1',
    'https://www.gotomeet.me/ada',
    'https://meet.goto.com/1',
  ])('the link %s in a text counts as a meeting link', (link) => {
    expect(inText(`Join: ${link}`)).toBe(link)
  })

  test.each([
    'https://zoom.us.evil.example/j/1',
    'https://evilzoom.us/j/1',
    'https://zoom.us@evil.example/j/1',
    'https://x.meet.google.com/abc',
    'https://google.com/abc',
    'http://zoom.us/j/1',
  ])('the link %s in a text does not count as a meeting link', (link) => {
    expect(inText(link)).toBeNull()
  })

  test('a link in a text ends before a blank, a quote, a bracket, or the punctuation of a sentence', () => {
    for (const end of [' x', '"x', "'x", '>x', '<x', ')x', '(x', ']x', '[x', '.', '!?', ',;:']) {
      expect(inText(`${ROOM}${end}`)).toBe(ROOM)
    }
  })

  test('the meeting link is found even after other links, and comes from the first text that contains a meeting link', () => {
    expect(inText('https://a.example/ and', `see ${ROOM}`, 'https://zoom.us/j/1')).toBe(ROOM)
    expect(inText(`https://a.example/ ${ROOM}`)).toBe(ROOM)
  })

  test('only the first hundred links of each text are searched for a meeting link', () => {
    const others = (count: number) => 'https://a.example/ '.repeat(count)
    expect(inText(others(99) + ROOM)).toBe(ROOM)
    expect(inText(others(100) + ROOM)).toBeNull()
    expect(inText(others(100), ROOM)).toBe(ROOM)
  })

  test('a meeting link in a calendar text has at most 2000 characters', () => {
    const longest = `https://zoom.us/${'x'.repeat(1_984)}`
    expect(inText(longest)).toBe(longest)
    expect(inText(`${longest}x`)).toBeNull()
  })
})

test('an event without links has no meeting link', () => {
  expect(meetingLink([], [])).toBeNull()
})
