import { h } from './dom.ts'

const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S
const DAY_S = 24 * HOUR_S

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const absolute = new Intl.DateTimeFormat('en-GB', {
  ...{ year: 'numeric', month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
})
const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
const whole = new Intl.NumberFormat('en')

/** Returns the time zone of the browser, for example `Europe/Berlin`. */
export const zoneName = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

/** Formats a time, for example `5 Jan 2026, 09:30:00 CET`. */
export const exactly = (time: string | Date): string => absolute.format(new Date(time))

/** Formats a time for an input of type `datetime-local`, in the time zone of the browser. */
export const localMinute = (time: Date): string =>
  new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)

/** Formats a number, for example `1,234`. */
export const count = (number: number): string => whole.format(number)

/**
 * Formats a number together with a noun, for example `1 message` or `2 messages`. The parameter `many` is the plural of
 * the noun, unless the plural only adds an s.
 */
export const plural = (number: number, word: string, many = `${word}s`): string =>
  `${count(number)} ${number === 1 ? word : many}`

function ago(iso: string): string {
  const seconds = (Date.parse(iso) - Date.now()) / 1000
  const size = Math.abs(seconds)
  if (size < 5) return 'now'
  if (size < MINUTE_S) return relative.format(Math.round(seconds), 'second')
  if (size < HOUR_S) return relative.format(Math.round(seconds / MINUTE_S), 'minute')
  if (size < DAY_S) return relative.format(Math.round(seconds / HOUR_S), 'hour')
  return size < 7 * DAY_S
    ? relative.format(Math.round(seconds / DAY_S), 'day')
    : day.format(new Date(iso))
}

/**
 * Shows a time relative to now, such as a number of minutes ago. The title of the HTML element holds the exact time.
 */
export const moment = (iso: string): HTMLElement =>
  h('time', { datetime: iso, title: exactly(iso), 'data-relative': true }, ago(iso))

/** Updates the relative times on the page as time passes. */
export function refreshMoments(): void {
  for (const time of document.querySelectorAll<HTMLTimeElement>('time[data-relative]')) {
    const text = ago(time.dateTime)
    if (time.textContent !== text) time.textContent = text
  }
}

/** Formats atomic USDC (10^-6) as a decimal number with at least two decimal places. */
export function usdc(atomic: string): string {
  const digits = atomic.padStart(7, '0')
  const places = digits.slice(-6).replace(/0{1,4}$/, '')
  return `${whole.format(BigInt(digits.slice(0, -6)))}.${places}`
}

/** Formats a number of bytes, for example as `12 KB`. */
export function bytes(size: number): string {
  if (size < 1024) return `${size} B`
  if (size < 1024 * 1024) return `${Math.round(size / 1024)} KB`
  return `${(size / 1024 / 1024).toFixed(1)} MB`
}

/** Shortens a text, for example to `0x1234…abcd`. The title of the HTML element shows the full text. */
export const short = (text: string, head = 8, tail = 6): HTMLElement =>
  h(
    'code',
    { title: text },
    text.length <= head + tail + 1 ? text : `${text.slice(0, head)}…${text.slice(-tail)}`,
  )
