import { type Colour, colourOf, type Ink } from '../ink.ts'
import { readPart } from './packageParts.ts'
import { type Attributes, attributeOf } from './xml.ts'
import type { ZipArchive } from './zipArchive.ts'

/** Describes how a sheet shows a cell. The field `isHidden` means that the cell's number format shows nothing. */
export type SheetStyle = { ink: Ink; format: string; isHidden: boolean }

const STYLES_MAX = 70_000
/**
 * Maps the numbers of the built-in formats for dates, times and percentages to the text of the format (ECMA-376 part 1,
 * §18.8.30).
 */
const BUILT_IN: Readonly<Record<number, string>> = {
  ...{ 9: '0%', 10: '0.00%', 14: 'yyyy-mm-dd', 15: 'd-mmm-yy', 16: 'd-mmm', 17: 'mmm-yy' },
  ...{ 18: 'h:mm', 19: 'h:mm:ss', 20: 'h:mm', 21: 'h:mm:ss', 22: 'yyyy-mm-dd h:mm' },
  ...{ 45: 'mm:ss', 46: '[h]:mm:ss', 47: 'mm:ss' },
}
/** Holds the first two colours of an Office theme: white and black. */
const THEME_COLOURS = new Map<string, Colour>([
  ['0', 'ffffff'],
  ['1', '000000'],
])

/** Reads the cell styles of a workbook. A cell names its style by the index in the returned list. */
export function readSheetStyles(archive: ZipArchive, part: string): SheetStyle[] {
  const formats = new Map<number, string>(
    Object.entries(BUILT_IN).map(([id, format]) => [Number(id), format]),
  )
  const fonts: Ink[] = []
  const fills: Ink[] = []
  const styles: SheetStyle[] = []
  let list = ''
  readPart(archive, part, {
    open(name, attributes) {
      if (['fonts', 'fills', 'cellXfs', 'cellStyleXfs', 'dxfs', 'borders'].includes(name))
        list = name
      if (name === 'numFmt' && list !== 'dxfs') {
        formats.set(Number(attributes.numFmtId), attributes.formatCode ?? '')
      }
      if (list === 'fonts') readFont(name, attributes, fonts)
      if (list === 'fills') readFill(name, attributes, fills)
      if (list === 'cellXfs' && name === 'xf' && styles.length < STYLES_MAX) {
        const format = formats.get(Number(attributes.numFmtId)) ?? ''
        styles.push({
          ink: {
            ...fonts[Number(attributes.fontId ?? 0)],
            ...fills[Number(attributes.fillId ?? 0)],
          },
          format,
          isHidden: /^;;;?$/.test(format.replace(/\s+/g, '')),
        })
      }
    },
  })
  return styles
}

function readFont(name: string, attributes: Attributes, fonts: Ink[]): void {
  if (name === 'font') fonts.push({})
  const font = fonts.at(-1)
  if (font === undefined) return
  if (name === 'sz') font.sizePt = Number(attributeOf(attributes, 'val'))
  if (name === 'color') font.colour = colourIn(attributes)
}

function readFill(name: string, attributes: Attributes, fills: Ink[]): void {
  if (name === 'fill') fills.push({})
  const fill = fills.at(-1)
  if (fill === undefined) return
  if (name === 'patternFill') {
    // A cell without a fill pattern shows the white page. The colour that it names for a pattern has no effect.
    if (attributes.patternType === 'none') fill.ground = 'ffffff'
    else if (!['solid', undefined].includes(attributes.patternType)) fill.ground = null
  }
  if (name === 'gradientFill') fill.ground = null
  if (name === 'fgColor' && fill.ground === undefined) fill.ground = colourIn(attributes)
}

function colourIn(attributes: Attributes): Colour {
  const theme = attributes.theme
  const known =
    theme !== undefined
      ? THEME_COLOURS.get(theme)
      : attributes.indexed !== undefined
        ? INDEXED_COLOURS.get(attributes.indexed)
        : colourOf(attributes.rgb)
  return attributes.tint === undefined ? (known ?? null) : tinted(known, Number(attributes.tint))
}

/**
 * Applies the tint of a sheet's colour (ECMA-376 part 1, §18.8.19). A negative tint darkens white, and a positive tint
 * lightens black. @returns null for any other colour, because the code does not compute its result.
 */
function tinted(colour: Colour | undefined, tint: number): Colour {
  const isKnown = Math.abs(tint) <= 1 && (tint <= 0 ? colour === 'ffffff' : colour === '000000')
  if (!isKnown) return null
  const level = Math.round(255 * (tint <= 0 ? 1 + tint : tint))
  return level.toString(16).padStart(2, '0').repeat(3)
}

/**
 * Maps those numbers of the old Excel palette that mean black or white to the colour (ECMA-376 part 1, §18.8.27). The
 * numbers 64 and 65 mean the system's colours for text and window.
 */
const INDEXED_COLOURS = new Map<string, Colour>([
  ...['0', '8', '64'].map((index): [string, Colour] => [index, '000000']),
  ...['1', '9', '65'].map((index): [string, Colour] => [index, 'ffffff']),
])

const DAY_MS = 86_400_000
/** Holds day 0 of the two calendars of Excel: 1899-12-30 and 1904-01-01. */
const [EPOCH_1900_MS, EPOCH_1904_MS] = [-2_209_161_600_000, -2_082_844_800_000]
/** Holds the last second of the year 9999, which is the end of the calendar in spreadsheets. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59)

/**
 * Matches the unit of a duration in a number format: hours, minutes or seconds in brackets (ECMA-376 part 1, §18.8.31).
 */
const ELAPSED = /\[(h+|m+|s+)\]/i

/**
 * Writes the number in a spreadsheet cell roughly as a person sees the number. Dates are in ISO 8601, and percentages
 * have a percent sign.
 */
export function shownValue(value: number, format: string, is1904: boolean): string {
  if (!Number.isFinite(value)) return ''
  // The code first removes words in quotes, escaped letters and colours from the number format, because they do not
  // tell how the number is shown.
  const fields = format.replace(/"[^"]*"|\\.|\[[^\]]*\]|_.|\*./g, '').split(';')[0] ?? ''
  if (fields.includes('%')) {
    // The percentage gets as many decimals as the number format of the cell, such as 72.6 % for the format 0.0%.
    const decimals = /\.([0#?]+)/.exec(fields)?.[1]?.length ?? 0
    return `${Number((value * 100).toFixed(Math.min(decimals, 12)))}%`
  }
  const elapsed = ELAPSED.exec(format.replace(/"[^"]*"|\\.|_.|\*./g, '').split(';')[0] ?? '')
  const hasDay = /[yd]/i.test(fields)
  const hasTime = /[hs]/i.test(fields)
  const epochMs = is1904 ? EPOCH_1904_MS : EPOCH_1900_MS
  const ms = Math.round((epochMs + value * DAY_MS) / 1000) * 1000
  if (elapsed !== null && value >= 0 && ms <= LAST_MS) return elapsedTime(value, elapsed[1]!)
  if ((!hasDay && !hasTime && !/m{3,}/i.test(fields)) || value < 0 || ms > LAST_MS) {
    return String(Number(value.toPrecision(15)))
  }
  const iso = new Date(ms).toISOString()
  const time = iso.slice(11, 19).replace(/:00$/, '')
  if (!hasTime) return iso.slice(0, 10)
  return hasDay ? `${iso.slice(0, 10)} ${time}` : time
}

/** Writes a number of days as a duration, such as 36:30 for a day and a half and thirty minutes. */
function elapsedTime(days: number, unit: string): string {
  const seconds = Math.round((days * DAY_MS) / 1000)
  const minutes = Math.floor(seconds / 60)
  const twoDigits = (count: number) => String(count % 60).padStart(2, '0')
  if (/^s/i.test(unit)) return String(seconds)
  if (/^m/i.test(unit)) return `${minutes}:${twoDigits(seconds)}`
  const rest = seconds % 60 === 0 ? '' : `:${twoDigits(seconds)}`
  return `${Math.floor(minutes / 60)}:${twoDigits(minutes)}${rest}`
}
