/** Writes mail as mbox (RFC 4155), with the reversible quoting of the variant mboxrd. */

/**
 * Matches an address that fits into the separator line of an mbox file. A blank or a line break in the address would
 * break this line.
 */
const ADDRESS = /^[\x21-\x7e]{1,320}$/

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const twoDigits = (n: number) => String(n).padStart(2, '0')

/** Writes a UTC time as the C function asctime does: `Mon Jan 5 09:30:00 2026`. */
function asctime(at: Date): string {
  const time = [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()].map(twoDigits).join(':')
  const day = String(at.getUTCDate()).padStart(2, ' ')
  return `${DAYS[at.getUTCDay()]} ${MONTHS[at.getUTCMonth()]} ${day} ${time} ${at.getUTCFullYear()}`
}

/**
 * Writes one message of an mbox file: the separator line, the message with LF line ends, and an empty line. A line of
 * the message that begins with `From `, after any number of `>`, gets one more `>`. Otherwise a mail could forge a
 * separator line and a whole message. The function also quotes after a lone CR, because some mbox readers end a line
 * there.
 */
export function mboxEntry(mail: { sender: string; at: Date; bytes: Uint8Array }): Buffer {
  const sender = ADDRESS.test(mail.sender) ? mail.sender : 'MAILER-DAEMON'
  // The function handles the bytes of the mail as Latin-1 text, because Latin-1 keeps every byte.
  const text = Buffer.from(mail.bytes)
    .toString('latin1')
    .replaceAll('\r\n', '\n')
    .replace(/(?<=^|[\r\n])>*From /g, '>$&')
  const end = text.endsWith('\n') ? '\n' : '\n\n'
  return Buffer.from(`From ${sender} ${asctime(mail.at)}\n${text}${end}`, 'latin1')
}
