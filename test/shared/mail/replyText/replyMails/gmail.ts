/** Holds test mails in the forms of Gmail on the web, Android and iOS. */
import {
  blocks,
  broken,
  chosen,
  escaped,
  fill,
  quoted,
  type ReplyMail,
  tierOf,
  wrap,
  wrapAll,
} from './build.ts'

const ATTRIBUTION: Record<string, string> = {
  en: 'On Tue, Mar 3, 2026 at 9:14\u202fAM {a} wrote:',
  enGB: 'On Tue, 3 Mar 2026 at 09:14, {a} wrote:',
  de: 'Am Di., 3. März 2026 um 09:14 Uhr schrieb {a}:',
  fr: 'Le mar. 3 mars 2026 à 09:14, {a} a écrit :',
  es: 'El mar, 3 mar 2026 a las 9:14, {n} (<{e}>) escribió:',
  pt: 'Em ter., 3 de mar. de 2026 às 09:14, {a} escreveu:',
  ptPT: '{a} escreveu (terça, 3/03/2026 à(s) 09:14):',
  it: 'Il giorno mar 3 mar 2026 alle ore 09:14 {a} ha scritto:',
  nl: 'Op di 3 mrt 2026 om 09:14 schreef {a}:',
  pl: 'wt., 3 mar 2026 o 09:14 {a} napisał(a):',
  ru: 'вт, 3 мар. 2026 г. в 09:14, {a}:',
  uk: 'вт, 3 бер. 2026 р. о 09:14 {a} пише:',
  cs: 'út 3. 3. 2026 v 9:14 odesílatel {a} napsal:',
  sk: 'ut 3. 3. 2026 o 9:14 {a} napísal(a):',
  sv: 'Den tis 3 mars 2026 kl 09:14 skrev {a}:',
  nb: 'tir. 3. mars 2026 kl. 09:14 skrev {a}:',
  da: 'Den tirs. 3. mar. 2026 kl. 09.14 skrev {a}:',
  fi: 'ti 3. maalisk. 2026 klo 9.14 {n} ({e}) kirjoitti:',
  hu: '{a} ezt írta (időpont: 2026. márc. 3., K, 9:14):',
  ro: 'În mar., 3 mar. 2026 la 09:14, {a} a scris:',
  el: 'Στις Τρί 3 Μαρ 2026 στις 9:14 π.μ., ο/η {a} έγραψε:',
  tr: '{a}, 3 Mar 2026 Sal, 09:14 tarihinde şunu yazdı:',
  vi: 'Vào Th 3, 3 thg 3, 2026 vào lúc 09:14 {a} đã viết:',
  zh: '{a} 于2026年3月3日周二 09:14写道：',
  tw: '{a} 於 2026年3月3日週二 上午9:14寫道：',
  ja: '2026年3月3日(火) 9:14 {a}:',
  ko: '2026년 3월 3일 (화) 오전 9:14, {a}님이 작성:',
  ar: 'في الثلاثاء، ٣ مارس ٢٠٢٦ في ٩:١٤ ص تمت كتابة ما يلي بواسطة \u202a{n}\u202c\u200f <\u202a{e}\u202c\u200f>:',
  he: '\u202bבתאריך יום ג׳, 3 במרץ 2026 ב-9:14 מאת \u202a{n}\u202c\u200f <\u202a{e}\u202c\u200f>:\u202c',
  id: 'Pada tanggal Sel, 3 Mar 2026 pukul 09.14 {a} menulis:',
  ca: 'Missatge de {a} del dia dt., 3 de març 2026 a les 9:14:',
  bg: 'На вт, 3.03.2026 г. в 9:14 {a} написа:',
}

const attribution = (language: string, variant = language) =>
  fill(language, ATTRIBUTION[variant] ?? '')

/**
 * Makes a reply in plain text, as Gmail writes it. Gmail wraps the attribution line, so the email address is often
 * alone on a line.
 */
const plain = (choice: string, variant?: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `gmail-text-${variant ?? language}-${length}`,
    text: `${wrapAll(body)}\n\n${wrap(attribution(language, variant))}\n\n${quoted(wrapAll(original, 74))}\n>\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const web = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `gmail-html-${language}-${length}`,
    html: `<div dir="ltr">${blocks(body)}</div><br><div class="gmail_quote gmail_quote_container"><div dir="ltr" class="gmail_attr">${escaped(attribution(language))}<br></div><blockquote class="gmail_quote" style="margin:0px 0px 0px 0.8ex;border-left:1px solid rgb(204,204,204);padding-left:1ex">${broken(original)}</blockquote></div>\n`,
    expected: body,
    tier: tierOf(length),
  }
}

/**
 * Makes test mails from which a relay or a ticket system has removed the HTML classes. Only the blockquote element is
 * left in their HTML.
 */
const stripped = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `gmail-stripped-${language}-${length}`,
    html: `<div>${blocks(body)}</div><br><div><div>${escaped(attribution(language))}<br></div><blockquote>${broken(original)}</blockquote></div>`,
    expected: body,
    tier: tierOf(length),
  }
}

const signed = (choice: string): ReplyMail => {
  const { language, body, original, me } = chosen(choice)
  return {
    id: `gmail-signature-${language}`,
    html: `<div dir="ltr">${blocks(body)}<div><br clear="all"></div><div><br></div><span class="gmail_signature_prefix">-- </span><br><div dir="ltr" class="gmail_signature" data-smartmail="gmail_signature"><div dir="ltr"><b>${me}</b><div>+49 30 5550 1234</div><div><a href="https://www.example.org">www.example.org</a></div></div></div></div><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">${escaped(attribution(language))}<br></div><blockquote class="gmail_quote">${broken(original)}</blockquote></div>`,
    expected: body,
    tier: 'core',
  }
}

const signedPlain = (choice: string): ReplyMail => {
  const { language, body, original, me } = chosen(choice)
  return {
    id: `gmail-signature-text-${language}`,
    text: `${wrapAll(body)}\n\n-- \n*${me}*\n+49 30 5550 1234\nwww.example.org <https://www.example.org>\n\n\n${wrap(attribution(language))}\n\n${quoted(wrapAll(original))}\n`,
    expected: body,
    tier: 'core',
  }
}

/**
 * Makes nested quotes of three authors. The lines of an older mail have more quote marks.
 */
const deep = (choice: string): ReplyMail => {
  const { language, body, original, short } = chosen(choice)
  const older = `${short}\n\n${wrap(attribution(language).replace('9:14', '8:02'))}\n\n${quoted(original)}`
  return {
    id: `gmail-deep-${language}`,
    text: `${wrapAll(body)}\n\n${wrap(attribution(language))}\n\n${quoted(`${original}\n\n${older}`)}\n`,
    expected: body,
    tier: 'policy',
  }
}

export const gmail: ReplyMail[] = [
  ...[
    'de',
    'fr',
    'es',
    'pt',
    'it',
    'nl',
    'pl',
    'ru',
    'uk',
    'cs',
    'sv',
    'fi',
    'hu',
    'el',
    'tr',
    'zh',
    'ja',
    'ko',
    'ar',
    'he',
    'bg',
    'ca',
  ].map((language) => plain(`${language}:short`)),
  plain('en:long', 'enGB'),
  plain('pt:long', 'ptPT'),
  ...['ro:long', 'vi:long', 'sk:long', 'nb:long', 'da:long', 'id:long', 'tw:long'].map((choice) =>
    plain(choice),
  ),
  ...['en:short', 'ja:long', 'uk:long', 'pl:long'].map(web),
  ...['de:long', 'tr:short', 'hu:short', 'ko:long', 'ru:long', 'id:short'].map(stripped),
  ...['en', 'sv'].map(signed),
  ...['fr', 'nl'].map(signedPlain),
  ...['es:long', 'cs:long'].map(deep),
]
