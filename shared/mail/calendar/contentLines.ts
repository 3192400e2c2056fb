/**
 * Corrects content lines (RFC 5545 §3.1) that the calendar library refuses although other calendar programs read them.
 */
import ICAL from 'ical.js'

/** Matches the name of a content line. A colon or a semicolon follows the name. */
const NAME = /^[\w-]+(?=[;:])/

/** Matches the names BEGIN and END of the first and the last line of a component. */
const FRAME = /^(?:BEGIN|END)$/i

/** Matches the names of the properties whose texts may have several lines. */
const TEXT = /^(?:SUMMARY|DESCRIPTION|LOCATION|COMMENT|X-ALT-DESC)$/i

/** Matches the names of the properties whose values are times. */
const TIME = /^(?:DTSTART|DTEND|RECURRENCE-ID|EXDATE|RDATE)$/i

/**
 * Matches the names of the lines that must never be left out. Without such a line, the service would read another
 * event, time or status than the sender wrote.
 */
const NEEDED =
  /^(?:BEGIN|END|METHOD|UID|SEQUENCE|STATUS|RECURRENCE-ID|DTSTART|DTEND|DURATION|DTSTAMP|RRULE|RDATE|EXDATE|TZ\w+)$/i

/** Holds the number of digits of a date (RFC 5545 §3.3.4). */
const DAY_LENGTH = 8

const nameOf = (line: string): string => NAME.exec(line)?.[0] ?? ''

/**
 * Corrects the lines and the times of a calendar file. Some programs do not escape the line breaks of a text. Therefore
 * a line that is no content line continues the text before it. If the line before it holds no free text (but, for
 * example, a time), the function removes the broken line. A date gets `VALUE=DATE`, and a time without seconds gets
 * seconds. A time in the format of RFC 3339 loses its separators.
 */
export function mendLines(text: string): string {
  const lines: { name: string; parts: string[] }[] = []
  for (const line of text.split(/\r\n|\n|\r/)) {
    const before = lines.at(-1)
    const name = nameOf(line)
    if (name !== '' || before === undefined) lines.push({ name, parts: [line] })
    else if (/^[ \t]/.test(line)) before.parts.push(line.slice(1))
    else if (TEXT.test(before.name) && line.trim() !== '') before.parts.push('\\n', line)
  }
  return lines.map(({ name, parts }) => mended(name, parts.join(''))).join('\r\n')
}

function mended(name: string, line: string): string {
  if (FRAME.test(name)) return line.trimEnd()
  if (!TIME.test(name)) return line
  const [, parameters, value] = /^[\w-]+((?:[^":]|"[^"]*")*):(.*)$/.exec(line) ?? []
  if (parameters === undefined) return line
  const values = value!.split(',').map((one) => mendTime(one.trim()))
  const isDate = values.every(isDay) && !/;VALUE=/i.test(parameters)
  return `${name}${parameters}${isDate ? ';VALUE=DATE' : ''}:${values.join(',')}`
}

/**
 * Matches the times that {@link mendTime} corrects. The pattern excludes month 13, which the calendar library would
 * read as the next January.
 */
const CORRECTED =
  /^\d{4}(-?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?:T(?:[01]\d|2[0-3])(:?)[0-5]\d(?:\2[0-5]\d)?Z?)?$/

function mendTime(value: string): string {
  if (!CORRECTED.test(value)) return value
  return value.replace(/[-:]/g, '').replace(/^(\d{8}T\d{4})(Z?)$/, '$100$2')
}

const isDay = (value: string): boolean => value.length === DAY_LENGTH && CORRECTED.test(value)

/**
 * Leaves out the lines that the calendar library cannot read, unless the event needs them. If a line becomes readable
 * without its quotes, the function only removes the quotes.
 * @param text has lines that {@link mendLines} has written.
 */
export const readableLines = (text: string): string =>
  text
    .split('\r\n')
    .flatMap((line) => {
      if (NEEDED.test(nameOf(line)) || isReadable(line)) return [line]
      const unquoted = line.replaceAll('"', '')
      return isReadable(unquoted) ? [unquoted] : []
    })
    .join('\r\n')

function isReadable(line: string): boolean {
  try {
    ICAL.parse.property(line)
    return true
  } catch {
    return false
  }
}
