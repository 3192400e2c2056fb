/** Holds test mails in the forms of Yahoo, Proton, Fastmail, Spark, Superhuman, HEY, Zoho and Thunderbird. */
import {
  blocks,
  broken,
  chosen,
  escaped,
  fill,
  quoted,
  type ReplyMail,
  tierOf,
  wrapAll,
} from './build.ts'

type Table = Record<string, string>
const line = (table: Table, language: string) => fill(language, table[language] ?? '')

const THUNDERBIRD: Table = {
  en: 'On 3/3/2026 9:14 AM, {n} wrote:',
  de: 'Am 03.03.26 um 09:14 schrieb {n}:',
  fr: 'Le 03/03/2026 à 09:14, {n} a écrit :',
  es: 'El 3/3/26 a las 9:14, {n} escribió:',
  it: 'Il 03/03/2026 09:14, {n} ha scritto:',
  nl: 'Op 03-03-2026 om 09:14 schreef {n}:',
  pl: 'W dniu 3.03.2026 o 09:14, {n} pisze:',
  ru: '03.03.2026 09:14, {n} пишет:',
  uk: '03.03.26 09:14, {n} пише:',
  cs: 'Dne 03. 03. 26 v 9:14 {n} napsal(a):',
  sv: 'Den 2026-03-03 kl. 09:14, skrev {n}:',
  da: 'Den 03.03.2026 kl. 09.14 skrev {n}:',
  fi: '{n} kirjoitti 3.3.2026 klo 9.14:',
  hu: '2026. 03. 03. 9:14 keltezéssel, {n} írta:',
  pt: 'Em 03/03/2026 09:14, {n} escreveu:',
  el: 'Στις 3/3/2026 9:14 π.μ., ο/η {n} έγραψε:',
  tr: '3.03.2026 09:14 tarihinde {n} yazdı:',
  ja: 'On 2026/03/03 9:14, {n} wrote:',
  zh: '在 2026/3/3 9:14, {n} 写道:',
  ko: '2026-03-03 오전 9:14에 {n} 이(가) 쓴 글:',
  ca: 'El 3/3/26 a les 9:14, {n} ha escrit:',
}

const thunderbird = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `thunderbird-text-${language}-${length}`,
    text: `${wrapAll(body, 72)}\n\n\n${line(THUNDERBIRD, language)}\n${quoted(original)}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const thunderbirdHtml = (choice: string): ReplyMail => {
  const { language, length, body, original, me } = chosen(choice)
  return {
    id: `thunderbird-html-${language}-${length}`,
    html: `<!DOCTYPE html><html><head><meta http-equiv="Content-Type" content="text/html; charset=UTF-8"></head><body>${blocks(body, '<p>', '</p>')}<div class="moz-signature">-- <br>${me}<br>Lindenallee 4, 10999 Berlin</div><div class="moz-cite-prefix">${line(THUNDERBIRD, language)}<br></div><blockquote type="cite" cite="mid:7f2c@x.example"><pre class="moz-quote-pre" wrap="">${escaped(original)}</pre></blockquote></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

/**
 * Makes test mails in which the answer stands below the quote, and the signature stands at the end, as on mailing
 * lists.
 */
const thunderbirdBottom = (choice: string): ReplyMail => {
  const { language, body, original, me } = chosen(choice)
  return {
    id: `thunderbird-bottom-${language}`,
    text: `${line(THUNDERBIRD, language)}\n${quoted(original)}\n\n${wrapAll(body, 72)}\n\n-- \n${me}\n`,
    expected: body,
    tier: 'core',
  }
}

const thunderbirdBottomHtml = (choice: string): ReplyMail => {
  const { language, body, original } = chosen(choice)
  return {
    id: `thunderbird-bottom-html-${language}`,
    html: `<html><body><div class="moz-cite-prefix">${line(THUNDERBIRD, language)}<br></div><blockquote type="cite" cite="mid:81@x.example">${blocks(original, '<p>', '</p>')}</blockquote>${blocks(body, '<p>', '</p>')}</body></html>`,
    expected: body,
    tier: 'core',
  }
}

const YAHOO: Table = {
  en: 'On Tuesday, March 3, 2026 at 09:14:00 AM PST, {a} wrote:',
  de: 'Am Dienstag, 3. März 2026 um 09:14:00 MEZ hat {a} Folgendes geschrieben:',
  fr: 'Le mardi 3 mars 2026 à 09:14:00 UTC+1, {a} a écrit :',
  es: 'En martes, 3 de marzo de 2026, 09:14:00 CET, {a} escribió:',
  it: 'Il martedì 3 marzo 2026 alle ore 09:14:00 CET, {a} ha scritto:',
  pt: 'Em terça-feira, 3 de março de 2026 às 09:14:00 BRT, {a} escreveu:',
  tw: '{a} 於 2026年3月3日 星期二 上午09:14:00 [GMT+8] 寫道：',
  pl: 'W dniu wtorek, 3 marca 2026 09:14:00 CET {a} napisał(a):',
}

const yahoo = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `yahoo-text-${language}-${length}`,
    text: ` ${body}\n    ${line(YAHOO, language)}  \n \n ${original.replaceAll('\n', '\n ')}  `,
    expected: body,
    tier: tierOf(length),
  }
}

const yahooHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `yahoo-html-${language}-${length}`,
    html: `<html><head></head><body><div class="ydp1 yahoo-style-wrap" style="font-size: 13px;">${blocks(body, '<div dir="ltr" data-setdir="false">')}<div><br></div></div><div id="yahoo_quoted_4519" class="yahoo_quoted"><div style="font-family:sans-serif;color:#26282a;"><div>${escaped(line(YAHOO, language))}</div><div><br></div><div><br></div><div>${blocks(original, '<p>', '</p>')}</div></div></div></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

/**
 * Makes test mails of Yahoo's telephone program, which writes the name and the address without a space between them.
 */
const yahooPhone: ReplyMail = {
  id: 'yahoo-phone-en',
  text: ' Both sizes, please. And could you add a sample of the cream paper?\n\nYahoo Mail: Search, Organize, Conquer \n \n  On Tue, Mar 3, 2026 at 9:14 AM, Laura Whitfield<laura.whitfield@harbour-print.example> wrote:   Hello Owen, which size do you want?\nLaura  \n',
  expected: 'Both sizes, please. And could you add a sample of the cream paper?',
  tier: 'core',
}

const PROTON: Table = {
  en: 'On Tuesday, March 3rd, 2026 at 9:14 AM, {a} wrote:',
  de: 'Am Dienstag, 3. März 2026 um 09:14 schrieb {a}:',
  fr: 'Le mardi 3 mars 2026 à 09:14, {a} a écrit :',
  es: 'El martes, 3 de marzo de 2026 a las 9:14, {a} escribió:',
  nl: 'Op dinsdag 3 maart 2026 om 09:14 schreef {a}:',
  sv: 'Den tisdag 3 mars 2026 kl. 09:14 skrev {a}:',
}

const PROTON_SIGNATURE: Table = {
  en: 'Sent with [Proton Mail](https://proton.me/mail/home) secure email.',
  de: 'Gesendet mit der sicheren E-Mail von [Proton Mail](https://proton.me/mail/home).',
  fr: 'Envoyé avec la messagerie sécurisée [Proton Mail](https://proton.me/mail/home).',
  es: 'Enviado con el correo electrónico seguro de [Proton Mail](https://proton.me/mail/home).',
}

const proton = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  const signature = PROTON_SIGNATURE[language]
  return {
    id: `proton-text-${language}-${length}`,
    text: `${body}\n${signature === undefined ? '' : `\n${signature}\n`}\n${line(PROTON, language)}\n\n${quoted(original)}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const protonHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `proton-html-${language}-${length}`,
    html: `<div style="font-family: Arial; font-size: 14px;">${broken(body)}</div><div class="protonmail_signature_block" style="font-family: Arial;"><div class="protonmail_signature_block-user protonmail_signature_block-empty"></div><div class="protonmail_signature_block-proton">Sent with <a href="https://proton.me/mail/home">Proton Mail</a> secure email.</div></div><div><br></div><div class="protonmail_quote">${escaped(line(PROTON, language))}<br><blockquote class="protonmail_quote" type="cite">${blocks(original)}</blockquote><br></div>`,
    expected: body,
    tier: tierOf(length),
  }
}

const fastmail = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  const head = fill(language, 'On Tue, 3 Mar 2026, at 9:14 AM, {n} wrote:')
  return {
    id: `fastmail-text-${language}-${length}`,
    text: `${body}\n\n${head}\n${quoted(original)}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const SPARK: Table = {
  en: 'On 3 Mar 2026 at 09:14 +0100, {a}, wrote:',
  de: 'Am 3. März 2026, 09:14 +0100 schrieb {a}:',
  fr: 'Le 3 mars 2026 à 09:14 +0100, {a}, a écrit :',
  es: 'El 3 mar 2026 9:14 +0100, {a}, escribió:',
  ru: '3 мар. 2026 г., 09:14 +0300, {a}, писал:',
}

const spark = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `spark-text-${language}-${length}`,
    text: `${body}\n\nSent with Spark\n${line(SPARK, language)}\n${quoted(original)}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const sparkHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `spark-html-${language}-${length}`,
    html: `<html><body><div name="messageBodySection"><div dir="auto">${broken(body)}</div></div><div name="messageSignatureSection"><br><div class="matchFont">Sent with <a href="https://sparkmailapp.com/source">Spark</a></div></div><div name="messageReplySection">${escaped(line(SPARK, language))}<br><blockquote type="cite" style="border-left-color: grey; border-left-width: thin; border-left-style: solid; margin: 5px 5px; padding-left: 10px;">${broken(original)}</blockquote></div></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

const superhuman = (choice: string): ReplyMail => {
  const { language, length, body, original, them, from } = chosen(choice)
  return {
    id: `superhuman-text-${language}-${length}`,
    text: `${body}\n\nSent via Superhuman ( https://sprh.mn/?vip=owen@office.example )\n\nOn Tue, Mar 03, 2026 at 9:14 AM, ${them} < ${from} > wrote:\n\n${quoted(original)}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const hey = (choice: string): ReplyMail => {
  const { language, length, body, original, them, from } = chosen(choice)
  return {
    id: `hey-html-${language}-${length}`,
    html: `<div class="trix-content">${blocks(body)}</div><br>On March 3, 2026, ${them} &lt;${from}&gt; wrote:<br><blockquote>${blocks(original)}</blockquote>`,
    expected: body,
    tier: tierOf(length),
  }
}

const ZOHO: Table = {
  en: '---- On Tue, 03 Mar 2026 09:14:00 +0530 {a} wrote ---',
  de: '---- Am Di, 03 Mär 2026 09:14:00 +0100 {a} schrieb ---',
  fr: '---- Le mar., 03 mars 2026 09:14:00 +0100 {a} a écrit ---',
  es: '---- El mar, 03 mar 2026 09:14:00 +0100 {a} escribió ---',
}

const zoho = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `zoho-text-${language}-${length}`,
    text: `${body}\n\n\n\n\n${line(ZOHO, language)}\n\n${original}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const zohoHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `zoho-html-${language}-${length}`,
    html: `<div style="font-family: Verdana;">${blocks(body)}<div><br></div><div class="zmail_extra_hr" style="border-top: 1px solid rgb(204, 204, 204);"></div><div class="zmail_extra" data-zbluepencil-ignore="true"><div><br></div><div id="Zm-_Id_-Sgn1">${escaped(line(ZOHO, language))}<br></div><div><br></div><blockquote id="blockquote_zmail" style="margin:0px"><div>${blocks(original)}</div></blockquote></div></div>`,
    expected: body,
    tier: tierOf(length),
  }
}

export const webmail: ReplyMail[] = [
  ...[
    'en:short',
    'pl:short',
    'ru:short',
    'uk:short',
    'cs:short',
    'sv:short',
    'da:long',
    'fi:short',
    'hu:short',
    'pt:short',
    'tr:short',
    'zh:short',
    'ko:short',
    'ca:short',
    'el:short',
  ].map(thunderbird),
  ...['de:long', 'ja:short'].map(thunderbirdHtml),
  ...['nl:short', 'it:short', 'es:short', 'fi:short'].map(thunderbirdBottom),
  ...['fr:short', 'hu:short'].map(thunderbirdBottomHtml),
  ...['en:short', 'de:short', 'fr:short', 'it:long', 'pt:long', 'tw:short'].map(yahoo),
  ...['es:short', 'pl:short'].map(yahooHtml),
  yahooPhone,
  ...['en:long', 'de:short', 'fr:short', 'es:long', 'nl:short', 'sv:short'].map(proton),
  ...['en:short'].map(protonHtml),
  ...['en:short', 'nl:long'].map(fastmail),
  ...['en:short', 'de:long', 'fr:short', 'ru:short'].map(spark),
  ...['es:short'].map(sparkHtml),
  ...['en:short', 'it:long'].map(superhuman),
  ...['en:long', 'da:short'].map(hey),
  ...['en:short', 'de:short', 'fr:long'].map(zoho),
  ...['es:short', 'en:long'].map(zohoHtml),
]
