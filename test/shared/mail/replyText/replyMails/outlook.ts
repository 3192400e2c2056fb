/** Holds test mails in the forms of Outlook on the desktop, on the web and on telephones. */
import { blocks, broken, chosen, escaped, fill, type ReplyMail, tierOf } from './build.ts'

/** Holds the words for from, sent, to and subject in each language, and a date in the form of the language. */
const LABELS: Record<string, [string, string, string, string, string]> = {
  en: ['From', 'Sent', 'To', 'Subject', 'Tuesday, March 3, 2026 9:14 AM'],
  de: ['Von', 'Gesendet', 'An', 'Betreff', 'Dienstag, 3. März 2026 09:14'],
  fr: ['De\u00a0', 'Envoyé\u00a0', 'À\u00a0', 'Objet\u00a0', 'mardi 3 mars 2026 09:14'],
  es: ['De', 'Enviado el', 'Para', 'Asunto', 'martes, 3 de marzo de 2026 9:14'],
  pt: ['De', 'Enviada em', 'Para', 'Assunto', 'terça-feira, 3 de março de 2026 09:14'],
  it: ['Da', 'Inviato', 'A', 'Oggetto', 'martedì 3 marzo 2026 09:14'],
  nl: ['Van', 'Verzonden', 'Aan', 'Onderwerp', 'dinsdag 3 maart 2026 09:14'],
  pl: ['Od', 'Wysłane', 'Do', 'Temat', 'wtorek, 3 marca 2026 09:14'],
  ru: ['От', 'Отправлено', 'Кому', 'Тема', '3 марта 2026 г. 9:14'],
  uk: ['Від', 'Надіслано', 'Кому', 'Тема', '3 березня 2026 р. 9:14'],
  cs: ['Od', 'Odesláno', 'Komu', 'Předmět', 'úterý 3. března 2026 9:14'],
  sk: ['Od', 'Odoslané', 'Komu', 'Predmet', 'utorok 3. marca 2026 9:14'],
  sv: ['Från', 'Skickat', 'Till', 'Ämne', 'den 3 mars 2026 09:14'],
  nb: ['Fra', 'Sendt', 'Til', 'Emne', 'tirsdag 3. mars 2026 09:14'],
  da: ['Fra', 'Sendt', 'Til', 'Emne', '3. marts 2026 09:14'],
  fi: ['Lähettäjä', 'Lähetetty', 'Vastaanottaja', 'Aihe', 'tiistai 3. maaliskuuta 2026 9.14'],
  hu: ['Feladó', 'Elküldve', 'Címzett', 'Tárgy', '2026. március 3., kedd 9:14'],
  ro: ['De la', 'Trimis', 'Către', 'Subiect', 'marți, 3 martie 2026 09:14'],
  el: ['Από', 'Στάλθηκε', 'Προς', 'Θέμα', 'Τρίτη, 3 Μαρτίου 2026 9:14 πμ'],
  tr: ['Kimden', 'Gönderildi', 'Kime', 'Konu', '3 Mart 2026 Salı 09:14'],
  vi: ['Từ', 'Đã gửi', 'Đến', 'Chủ đề', 'Thứ Ba, 3 tháng 3, 2026 9:14 SA'],
  zh: ['发件人', '发送时间', '收件人', '主题', '2026年3月3日 9:14'],
  tw: ['寄件者', '寄件日期', '收件者', '主旨', '2026年3月3日 上午 09:14'],
  ja: ['差出人', '送信日時', '宛先', '件名', '2026年3月3日 9:14'],
  ko: ['보낸 사람', '보낸 날짜', '받는 사람', '제목', '2026년 3월 3일 화요일 오전 9:14'],
  ar: ['من', 'تم الإرسال', 'إلى', 'الموضوع', '03 مارس, 2026 09:14 ص'],
  he: ['מאת', 'נשלח', 'אל', 'נושא', 'יום שלישי 03 מרץ 2026 09:14'],
  id: ['Dari', 'Dikirim', 'Kepada', 'Subjek', 'Selasa, 03 Maret 2026 09.14'],
}

const GET_OUTLOOK: Record<string, string> = {
  en: 'Get Outlook for iOS<https://aka.ms/o0ukef>',
  de: 'Outlook für iOS beziehen<https://aka.ms/o0ukef>',
  fr: 'Obtenir Outlook pour iOS<https://aka.ms/o0ukef>',
  es: 'Obtener Outlook para Android<https://aka.ms/AAb9ysg>',
  pt: 'Obter o Outlook para iOS<https://aka.ms/o0ukef>',
  it: 'Ottieni Outlook per Android<https://aka.ms/AAb9ysg>',
  nl: 'Outlook voor iOS downloaden<https://aka.ms/o0ukef>',
  pl: 'Pobierz program Outlook dla systemu Android<https://aka.ms/AAb9ysg>',
  sv: 'Skaffa Outlook för iOS<https://aka.ms/o0ukef>',
  tr: 'iOS için Outlook’u edinin<https://aka.ms/o0ukef>',
  ja: 'iOS 版 Outlook を入手<https://aka.ms/o0ukef>',
  zh: '获取 Outlook for iOS<https://aka.ms/o0ukef>',
}

const RULE = '________________________________'

const rows = (language: string): [string, string][] => {
  const [from, sent, to, subject, date] = LABELS[language] ?? ['', '', '', '', '']
  return [
    [from, fill(language, '{a}')],
    [sent, date],
    [to, fill(language, '{m} <agent@inbox.example>')],
    [subject, 'RE: 2026-118'],
  ]
}

const head = (language: string) =>
  rows(language)
    .map(([label, value]) => `${label}: ${value}`)
    .join('\n')

const boldHead = (language: string) =>
  rows(language)
    .map(([label, value]) => `<b>${label}:</b> ${escaped(value)}`)
    .join('<br>\n')

const desktopPlain = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `outlook-desktop-text-${language}-${length}`,
    text: `${body.replaceAll('\n', '\r\n')}\r\n\r\n${head(language).replaceAll('\n', '\r\n')}\r\n\r\n${original.replaceAll('\n', '\r\n')}\r\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const BANNERS: Record<string, string> = {
  en: '-----Original Message-----',
  de: '-----Ursprüngliche Nachricht-----',
  fr: "-----Message d'origine-----",
  es: '-----Mensaje original-----',
  it: '-----Messaggio originale-----',
  nl: '-----Oorspronkelijk bericht-----',
  sv: '-----Ursprungligt meddelande-----',
  fi: '-----Alkuperäinen viesti-----',
  cs: '-----Původní zpráva-----',
  hu: '-----Eredeti üzenet-----',
  el: '-----Αρχικό μήνυμα-----',
  ro: '-----Mesaj original-----',
}

const bannerPlain = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `outlook-banner-${language}-${length}`,
    text: `${body}\n\n${BANNERS[language]}\n${head(language)}\n\n${original}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const phonePlain = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `outlook-phone-text-${language}-${length}`,
    text: `${body}\n\n${GET_OUTLOOK[language]}\n${RULE}\n${head(language)}\n\n${original}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const webPlain = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `outlook-web-text-${language}-${length}`,
    text: `${body}\n${RULE}\n${head(language)}\n\n${original}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const desktopHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `outlook-desktop-html-${language}-${length}`,
    html: `<html xmlns:o="urn:schemas-microsoft-com:office:office"><head><style><!--\np.MsoNormal {margin:0cm; font-size:11.0pt;}\n--></style></head><body lang="X-NONE" link="#0563C1"><div class="WordSection1">${blocks(body, '<p class="MsoNormal"><span>', '<o:p></o:p></span></p>', '<o:p>&nbsp;</o:p>')}<p class="MsoNormal"><o:p>&nbsp;</o:p></p><div><div style="border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm"><p class="MsoNormal">${boldHead(language)}<o:p></o:p></p></div></div>${blocks(original, '<p class="MsoNormal">', '<o:p></o:p></p>', '<o:p>&nbsp;</o:p>')}</div></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

const webHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `outlook-web-html-${language}-${length}`,
    html: `<html><head></head><body dir="ltr">${blocks(body, '<div class="elementToProof" style="font-family: Aptos, sans-serif; font-size: 12pt;">')}<div id="appendonsend"></div><hr style="display:inline-block;width:98%" tabindex="-1"><div id="divRplyFwdMsg" dir="ltr"><font face="Calibri, sans-serif" style="font-size:11pt" color="#000000">${boldHead(language)}</font><div>&nbsp;</div></div><div>${broken(original)}</div></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

/** Makes test mails of the new Outlook, which keeps the signature in a separate HTML element. */
const webSigned = (choice: string): ReplyMail => {
  const { language, body, original, me } = chosen(choice)
  return {
    id: `outlook-web-signature-${language}`,
    html: `<html><body dir="ltr">${blocks(body, '<div class="elementToProof">')}<div class="elementToProof" id="Signature"><p>${me}<br>Facility Management<br>T +44 20 7946 0123</p></div><div id="appendonsend"></div><hr tabindex="-1" style="display:inline-block; width:98%"><div id="divRplyFwdMsg"><span style="font-size:11pt">${boldHead(language)}</span></div><div>${broken(original)}</div></body></html>`,
    expected: body,
    tier: 'core',
  }
}

const phoneHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  const [name = '', address = ''] = (GET_OUTLOOK[language] ?? '').split('<')
  return {
    id: `outlook-phone-html-${language}-${length}`,
    html: `<html><body><div dir="ltr">${blocks(body)}</div><div id="ms-outlook-mobile-body-separator-line" dir="ltr"><br></div><div id="ms-outlook-mobile-signature" dir="ltr"><a href="${address.replace('>', '')}">${name}</a></div><div id="mail-editor-reference-message-container"><div class="ms-outlook-mobile-reference-message skipProofing"><hr style="display: inline-block; width: 98%;"><div id="divRplyFwdMsg" dir="ltr"><span style="font-size: 11pt;">${boldHead(language)}</span></div><br>${broken(original)}</div></div></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

/**
 * Makes test mails of Outlook that a gateway has rewritten, so that their HTML has no class and no identifier.
 */
const bareHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  return {
    id: `outlook-bare-html-${language}-${length}`,
    html: `<html><body><div>${blocks(body, '<p>', '</p>')}<div><p>${boldHead(language)}</p></div>${blocks(original, '<p>', '</p>')}</div></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

export const outlook: ReplyMail[] = [
  ...[
    'en:long',
    'fr:short',
    'pl:short',
    'uk:short',
    'sk:short',
    'nb:short',
    'fi:short',
    'el:short',
    'vi:short',
    'ko:short',
    'ar:short',
    'id:short',
  ].map(desktopPlain),
  ...[
    'de:long',
    'fr:long',
    'es:short',
    'cs:long',
    'hu:short',
    'el:long',
    'ro:short',
    'sv:short',
    'fi:long',
  ].map(bannerPlain),
  ...[
    'de:short',
    'es:long',
    'pt:short',
    'nl:long',
    'tr:short',
    'ja:short',
    'zh:short',
    'pl:long',
  ].map(phonePlain),
  ...['it:short', 'ru:long', 'he:short', 'tw:short', 'da:short'].map(webPlain),
  ...['en:short', 'sv:long', 'ja:long', 'hu:long'].map(desktopHtml),
  ...['fr:short', 'tr:long', 'vi:long'].map(webHtml),
  ...['en:short', 'nl:short'].map(webSigned),
  ...['it:long', 'fr:long'].map(phoneHtml),
  ...['pt:long', 'cs:short', 'ro:long', 'ko:long'].map(bareHtml),
]
