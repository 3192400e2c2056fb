/**
 * Holds test mails with answers between quoted lines. The reply text keeps the answers together with the lines that
 * they answer (docs/contract.md §4).
 */
import { blocks, escaped, quoted, type ReplyMail } from './build.ts'

type Answers = {
  id: string
  head: string
  pairs: [string, string][]
  lead?: string
  tail?: string
  html?: 'gmail' | 'apple' | 'thunderbird'
}

const inline = ({ id, head, pairs, lead = '', tail = '', html }: Answers): ReplyMail => {
  const before = lead === '' ? '' : `${lead}\n\n`
  const after = tail === '' ? '' : `\n\n${tail}`
  const marked = pairs.map(([question, answer]) => `${quoted(question)}\n\n${answer}`).join('\n\n')
  const bare = pairs.map(([question, answer]) => `${question}\n\n${answer}`).join('\n\n')
  const answers = pairs.map(([, answer]) => answer).join('\n\n')
  const alt = [
    `${before}${head}\n${marked}${after}`,
    `${before}${head}\n${bare}${after}`,
    `${before}${bare}${after}`,
    `${before}${answers}${after}`,
  ]
  const expected = `${before}${marked}${after}`
  if (html === undefined)
    return { id, text: `${before}${head}\n${marked}${after}\n`, expected, alt, tier: 'policy' }
  const quote = {
    gmail: '<blockquote class="gmail_quote">',
    apple: '<blockquote type="cite">',
    thunderbird: '<blockquote type="cite" cite="mid:3@x.example">',
  }[html]
  const body = pairs
    .map(([question, answer]) => `${quote}${blocks(question)}</blockquote>${blocks(answer)}`)
    .join('')
  const first = lead === '' ? '' : blocks(lead)
  const last = tail === '' ? '' : blocks(tail)
  const attribution =
    html === 'thunderbird'
      ? `<div class="moz-cite-prefix">${escaped(head)}<br></div>`
      : `<div>${escaped(head)}<br></div>`
  return {
    id,
    html: `<html><body>${first}${attribution}${body}${last}</body></html>`,
    expected,
    alt,
    tier: 'policy',
  }
}

export const inlineAnswers: ReplyMail[] = [
  inline({
    id: 'inline-thunderbird-en',
    head: 'On 3/3/2026 9:14 AM, Laura Whitfield wrote:',
    pairs: [
      ['Which door shall we use?', 'The one in the yard.'],
      ['Do you need a receipt?', 'Yes, one on paper please.'],
    ],
    tail: 'Owen',
  }),
  inline({
    id: 'inline-gmail-de',
    head: 'Am Di., 3. März 2026 um 09:14 Uhr schrieb Katrin Vogel <katrin.vogel@tischlerei-vogel.example>:',
    lead: 'Antworten stehen unten im Text.',
    pairs: [
      ['Welche Farbe sollen die Regale haben?', 'Eiche hell.'],
      ['Sollen wir montieren?', 'Ja, bitte im ersten Stock.'],
    ],
  }),
  inline({
    id: 'inline-apple-fr',
    head: 'Le 3 mars 2026 à 09:14, Benoît Caron <b.caron@atelier-caron.example> a écrit :',
    pairs: [
      ['Quelle date vous convient ?', 'Le jeudi 12.'],
      ['Faut-il prévoir un monte-charge ?', 'Non, tout est au rez-de-chaussée.'],
    ],
    html: 'apple',
  }),
  inline({
    id: 'inline-gmail-html-en',
    head: 'On Tue, Mar 3, 2026 at 9:14 AM Laura Whitfield <laura.whitfield@harbour-print.example> wrote:',
    lead: 'See my answers below.',
    pairs: [
      ['How many copies?', 'Forty a day.'],
      ['Glossy or matt?', 'Matt.'],
      ['Delivery on Friday?', 'No, Thursday.'],
    ],
    html: 'gmail',
  }),
  inline({
    id: 'inline-thunderbird-html-pl',
    head: 'W dniu 3.03.2026 o 09:14, Marek Sowa pisze:',
    pairs: [
      ['Ile sztuk?', 'Dwieście.'],
      ['Jaki termin?', 'Do piątku.'],
    ],
    html: 'thunderbird',
  }),
  inline({
    id: 'inline-list-es',
    head: 'El 3/3/26 a las 9:14, Rodrigo Peña escribió:',
    pairs: [
      ['¿Cuántos carteles?', 'Trescientos.'],
      ['¿Tamaño A2 o A3?', 'A3.'],
    ],
    tail: 'Un saludo,\nMarta',
  }),
  inline({
    id: 'inline-ja',
    head: 'On 2026/03/03 9:14, 田中健一 wrote:',
    pairs: [
      ['部数は何部でしょうか。', '五十部です。'],
      ['納期はいつでしょうか。', '金曜日です。'],
    ],
  }),
  inline({
    id: 'inline-ru',
    head: '03.03.2026 09:14, Павел Громов пишет:',
    pairs: [
      ['Сколько экземпляров?', 'Пятьсот.'],
      ['Какая бумага?', 'Плотная, матовая.'],
    ],
  }),
]
