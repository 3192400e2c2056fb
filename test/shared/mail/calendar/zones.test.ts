/** Tests how the service reads the names of time zones in calendar files. */
import { describe, expect, test } from 'bun:test'
import ICAL from 'ical.js'
import { FLOATING, ianaName, localOf, UTC, zoneOf } from '../../../../shared/mail/calendar/zones.ts'

const TEN = ICAL.Time.fromDateTimeString('2026-03-02T10:00:00')
const hourIn = (zone: { instantOf(local: ICAL.Time): number }) =>
  new Date(zone.instantOf(TEN)).toISOString().slice(11, 16)

/** Returns the definition of a time zone that is always five hours ahead of UTC. */
function definition(tzid: string, location?: string): ICAL.Timezone {
  const component = new ICAL.Component(
    ICAL.parse(
      [
        'BEGIN:VTIMEZONE',
        `TZID:${tzid}`,
        ...(location === undefined ? [] : [`X-LIC-LOCATION:${location}`]),
        'BEGIN:STANDARD',
        'DTSTART:19700101T000000',
        'TZOFFSETFROM:+0500',
        'TZOFFSETTO:+0500',
        'END:STANDARD',
        'END:VTIMEZONE',
      ].join('\r\n'),
    ),
  )
  return new ICAL.Timezone({ component, tzid })
}

describe('the service translates a TZID (name of a time zone) into its IANA name', () => {
  test.each([
    ['Europe/Berlin', 'Europe/Berlin'],
    [' Europe/Berlin ', 'Europe/Berlin'],
    ['America/Argentina/Buenos_Aires', 'America/Argentina/Buenos_Aires'],
    ['America/Port-au-Prince', 'America/Port-au-Prince'],
    ['/freeassociation.example/Europe/Berlin', 'Europe/Berlin'],
    ['/citadel.example/20260101_1/America/New_York', 'America/New_York'],
    ['W. Europe Standard Time', 'Europe/Berlin'],
    ['Eastern Standard Time', 'America/New_York'],
  ])('the TZID %s means the IANA zone %s', (tzid, name) => {
    expect(ianaName(tzid)).toBe(name)
  })

  test.each(['utc', 'UTC', 'GMT', 'Z', 'Etc/UTC', 'Etc/GMT', 'Zulu', 'tzone://Microsoft/Utc'])(
    'the TZID %s means UTC',
    (tzid) => {
      expect(ianaName(tzid)).toBe('UTC')
    },
  )

  test.each(['', ' ', 'Nowhere', 'Europe/Atlantis', 'Europe/Berlin/x', 'xEurope/Berlin', 'CET'])(
    'the TZID "%s" is not the name of a zone',
    (tzid) => {
      expect(ianaName(tzid)).toBeNull()
    },
  )

  test('the service reads a TZID (name of a time zone) only up to 200 characters', () => {
    const tzid = (length: number) => `/${'x'.repeat(length - 15)}/Europe/Berlin`
    expect(ianaName(tzid(200))).toBe('Europe/Berlin')
    expect(ianaName(tzid(201))).toBeNull()
  })
})

describe('if a TZID (name of a time zone) is no IANA name, the service finds the time zone in the calendar file', () => {
  test('a TZID with an IANA name means this IANA zone, even if the calendar file defines a zone with this name', () => {
    const zone = zoneOf('Europe/Berlin', definition('Europe/Berlin'))
    expect([zone.name, hourIn(zone)]).toEqual(['Europe/Berlin', '09:00'])
  })

  test('a TZID (name of a time zone) that is a name of UTC means UTC', () => {
    expect(zoneOf('GMT', undefined)).toBe(UTC)
  })

  test('if a TZID (name of a time zone) is unknown, X-LIC-LOCATION in the zone’s definition gives the name', () => {
    const zone = zoneOf('Our office', definition('Our office', 'Asia/Tokyo'))
    expect([zone.name, hourIn(zone)]).toEqual(['Asia/Tokyo', '01:00'])
  })

  test('if a TZID has no known zone name, its times have no zone name, and use the offset that the calendar file defines', () => {
    const zone = zoneOf('Our office', definition('Our office', 'Somewhere'))
    expect([zone.name, hourIn(zone)]).toEqual([null, '05:00'])
    expect(zoneOf('CET', definition('CET')).name).toBeNull()
  })

  test.each([
    [
      'an hour',
      '+0100',
      '+0200',
      ['01:59', '02:00', '02:59', '03:00'],
      ['00:59', '01:00', '01:59', '01:00'],
    ],
    [
      'half an hour',
      '+1030',
      '+1100',
      ['01:59', '02:00', '02:29', '02:30', '02:59'],
      ['15:29', '15:30', '15:59', '15:30', '15:59'],
    ],
  ])(
    'a local time that a change by %s skips has the offset before the change',
    (_, from, to, times, utc) => {
      const change = (kind: string, start: string, [before, after]: string[]) => [
        `BEGIN:${kind}`,
        `DTSTART:${start}T020000`,
        `TZOFFSETFROM:${before}`,
        `TZOFFSETTO:${after}`,
        `END:${kind}`,
      ]
      const lines = [
        'BEGIN:VTIMEZONE',
        'TZID:Our office',
        ...change('STANDARD', '20251026', [to, from]),
        ...change('DAYLIGHT', '20260329', [from, to]),
        'END:VTIMEZONE',
      ]
      const component = new ICAL.Component(ICAL.parse(lines.join('\r\n')))
      const zone = zoneOf('Our office', new ICAL.Timezone({ component, tzid: 'Our office' }))
      const found = times.map((time) => {
        const atMs = zone.instantOf(ICAL.Time.fromDateTimeString(`2026-03-29T${time}:00`))
        return new Date(atMs).toISOString().slice(11, 16)
      })
      expect(found).toEqual(utc)
    },
  )

  test('a TZID may be an old short name such as EST5EDT if the calendar file does not define this zone', () => {
    expect(hourIn(zoneOf('CET', undefined))).toBe('09:00')
    expect(hourIn(zoneOf('EST5EDT', undefined))).toBe('15:00')
  })

  test('if nothing is known about a TZID (name of a time zone), the time is floating (a local time without a zone)', () => {
    for (const tzid of ['', 'Nowhere', 'XYZ', 'cet', 'CET1', 'Iran']) {
      expect(zoneOf(tzid, undefined)).toBe(FLOATING)
    }
    expect([FLOATING.name, hourIn(FLOATING)]).toEqual([null, '10:00'])
  })
})

test('the local time of an instance is written with seconds and without a time zone', () => {
  const atMs = Date.parse('2026-03-02T10:00:00.500Z')
  expect(localOf(atMs, 'Europe/Berlin')).toBe('2026-03-02T11:00:00')
  expect(localOf(atMs, null)).toBe('2026-03-02T10:00:00')
})
