/** Holds test mails in the forms of Apple Mail on macOS and iOS. */
import { blocks, broken, chosen, escaped, fill, quoted, type ReplyMail, tierOf } from './build.ts'

const ATTRIBUTION: Record<string, string> = {
  en: 'On 3 Mar 2026, at 09:14, {a} wrote:',
  de: 'Am 03.03.2026 um 09:14 schrieb {a}:',
  fr: 'Le 3 mars 2026 à 09:14, {a} a écrit :',
  es: 'El 3 mar 2026, a las 9:14, {a} escribió:',
  pt: 'Em 3 de mar. de 2026, à(s) 09:14, {a} escreveu:',
  it: 'Il giorno 3 mar 2026, alle ore 09:14, {a} ha scritto:',
  nl: 'Op 3 mrt. 2026 om 09:14 heeft {a} het volgende geschreven:',
  pl: 'Wiadomość napisana przez {a} w dniu 3 mar 2026, o godz. 09:14:',
  ru: '3 марта 2026 г., в 09:14, {a} написал(а):',
  uk: '3 бер. 2026 р. о 09:14 {a} пише:',
  cs: '3. 3. 2026 v 9:14, {a}:',
  sk: 'Dňa 3. 3. 2026 o 9:14 používateľ {a} napísal:',
  sv: '3 mars 2026 kl. 09:14 skrev {a}:',
  nb: '3. mars 2026 kl. 09:14 skrev {a}:',
  da: 'Den 3. mar. 2026 kl. 09.14 skrev {a}:',
  fi: '{a} kirjoitti 3.3.2026 kello 9.14:',
  hu: '{a} írta (2026. márc. 3. dátummal, 9:14 időpontban):',
  ro: 'Pe 3 mar. 2026, la 09:14, {a} a scris:',
  el: 'Στις 3 Μαρ 2026, 9:14 π.μ., ο χρήστης {a} έγραψε:',
  tr: '{a} şunları yazdı (3 Mar 2026 09:14):',
  zh: '2026年3月3日 09:14，{a} 写道：',
  tw: '{a} 於 2026年3月3日 上午9:14 寫道：',
  ja: '2026/03/03 9:14、{a}のメール:',
  ko: '2026. 3. 3. 오전 9:14, {a} 작성:',
  he: '\u200fב-3 במרץ 2026, בשעה 9:14, {a} כתב/ה:',
  ca: 'El 3 març 2026, a les 9:14, {a} va escriure:',
}

const SENT_FROM: Record<string, string> = {
  en: 'Sent from my iPhone',
  de: 'Von meinem iPhone gesendet',
  fr: 'Envoyé de mon iPhone',
  es: 'Enviado desde mi iPhone',
  pt: 'Enviado do meu iPhone',
  it: 'Inviato da iPhone',
  nl: 'Verstuurd vanaf mijn iPhone',
  pl: 'Wysłane z iPhone’a',
  ru: 'Отправлено с iPhone',
  cs: 'Odesláno z iPhonu',
  sv: 'Skickat från min iPhone',
  nb: 'Sendt fra min iPhone',
  da: 'Sendt fra min iPhone',
  fi: 'Lähetetty iPhonesta',
  hu: 'iPhone-ról küldve',
  ro: 'Trimis de pe iPhone-ul meu',
  tr: 'iPhone’umdan gönderildi',
  zh: '发自我的 iPhone',
  ja: 'iPhoneから送信',
  ko: '나의 iPhone에서 보냄',
  he: 'נשלח מה-iPhone שלי',
}

const attribution = (language: string) => fill(language, ATTRIBUTION[language] ?? '')

const macPlain = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `apple-mac-text-${language}-${length}`,
    text: `${body}\n\n> ${attribution(language)}\n> \n${quoted(original)}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

/**
 * Makes test mails of older releases of Apple Mail, which put the attribution (`On …, Bob wrote:`) before the quote
 * element.
 */
const macOldPlain = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `apple-old-text-${language}-${length}`,
    text: `${body}\n\n${attribution(language)}\n\n${quoted(original)}\n\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const phonePlain = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `apple-phone-text-${language}-${length}`,
    text: `${body}\n\n${SENT_FROM[language]}\n\n> ${attribution(language)}\n> \n> \ufeff${quoted(original).slice(2)}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const macHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `apple-mac-html-${language}-${length}`,
    html: `<html><head><meta http-equiv="content-type" content="text/html; charset=utf-8"></head><body style="overflow-wrap: break-word; -webkit-nbsp-mode: space; line-break: after-white-space;">${blocks(body)}<br><div><blockquote type="cite"><div>${escaped(attribution(language))}</div><br class="Apple-interchange-newline"><div><div>${broken(original)}</div></div></blockquote></div><br></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

const phoneHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `apple-phone-html-${language}-${length}`,
    html: `<html><head><meta http-equiv="content-type" content="text/html; charset=utf-8"></head><body dir="auto">${broken(body)}<br id="lineBreakAtBeginningOfSignature"><div dir="ltr">${SENT_FROM[language]}</div><div dir="ltr"><br><blockquote type="cite">${escaped(attribution(language))}<br><br></blockquote></div><blockquote type="cite"><div dir="ltr">\ufeff${blocks(original, '<p>', '</p>')}</div></blockquote></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

/**
 * Makes a test mail that was written on a telephone and is not a reply. It has a device line ("Sent from my iPhone") at
 * the end and no quote.
 */
const phoneFresh = (language: string): ReplyMail => {
  const { body } = chosen(`${language}:short`)
  return {
    id: `apple-phone-fresh-${language}`,
    text: `${body}\n\n${SENT_FROM[language]}`,
    expected: body,
    tier: 'core',
  }
}

export const apple: ReplyMail[] = [
  ...[
    'en:short',
    'fr:short',
    'pl:short',
    'fi:short',
    'tr:long',
    'ja:short',
    'uk:short',
    'sk:short',
  ].map(macPlain),
  ...[
    'cs:short',
    'hu:short',
    'el:long',
    'ro:short',
    'zh:short',
    'ko:long',
    'nb:short',
    'ca:short',
    'tw:short',
  ].map(macOldPlain),
  ...[
    'de:short',
    'es:long',
    'it:short',
    'nl:short',
    'sv:long',
    'ru:short',
    'da:short',
    'he:short',
    'tr:short',
    'hu:long',
    'ro:long',
  ].map(phonePlain),
  ...['pt:short', 'pl:long'].map(macHtml),
  ...['en:long', 'zh:long', 'fi:long'].map(phoneHtml),
  ...['cs', 'ja', 'ko', 'pl', 'nb'].map(phoneFresh),
]
