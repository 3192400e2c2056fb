/** Matches the host names of services for video meetings. A link to such a host opens an online meeting. */
const MEETING_HOSTS =
  /^(?:meet\.google\.com|teams\.microsoft\.com|teams\.live\.com|whereby\.com|meet\.jit\.si|bluejeans\.com|chime\.aws|around\.co|(?:[a-z0-9-]+\.)*(?:zoom\.us|zoomgov\.com|webex\.com|gotomeeting\.com|gotomeet\.me|whereby\.com|meet\.goto\.com))$/i
const LINK = /https:\/\/[^\s<>"'()[\]]+/g
const LINK_MAX_LENGTH = 2_000
/** Sets the maximum number of links in a text that the function tests for an online meeting. */
const LINKS_LOOKED_AT = 100

/**
 * Finds the link to the online meeting of an event. @returns null if the function finds no such link.
 * @param named lists the contents of calendar fields that hold nothing but a link, the most reliable field first.
 * @param texts holds the text of the calendar event's LOCATION and of its DESCRIPTION.
 */
export function meetingLink(named: readonly string[], texts: readonly string[]): string | null {
  for (const text of named) {
    const link = httpsLink(text.trim())
    if (link !== null) return link.href
  }
  for (const text of texts) {
    let looked = 0
    for (const [found] of text.matchAll(LINK)) {
      if (++looked > LINKS_LOOKED_AT) break
      const link = httpsLink(found.replace(/[.,;:!?]+$/, ''))
      if (link !== null && MEETING_HOSTS.test(link.hostname)) return link.href
    }
  }
  return null
}

function httpsLink(text: string): URL | null {
  if (text.length > LINK_MAX_LENGTH) return null
  const link = URL.parse(text)
  return link?.protocol === 'https:' ? link : null
}
