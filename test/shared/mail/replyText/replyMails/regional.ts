/** Holds test mails in the forms of Samsung, K-9, GMX, WEB.DE, Mail.ru and Yandex. */
import { blocks, broken, chosen, escaped, fill, quoted, type ReplyMail, tierOf } from './build.ts'

type Galaxy = { sent: string; banner: string; labels: [string, string, string, string] }

const GALAXY: Record<string, Galaxy> = {
  en: {
    sent: 'Sent from my Galaxy',
    banner: '-------- Original message --------',
    labels: ['From', 'Date', 'To', 'Subject'],
  },
  de: {
    sent: 'Von meinem Galaxy gesendet',
    banner: '-------- Ursprüngliche Nachricht --------',
    labels: ['Von', 'Datum', 'An', 'Betreff'],
  },
  fr: {
    sent: 'Envoyé depuis mon appareil Galaxy',
    banner: "-------- Message d'origine --------",
    labels: ['De ', 'Date ', 'À ', 'Objet '],
  },
  es: {
    sent: 'Enviado desde mi Galaxy',
    banner: '-------- Mensaje original --------',
    labels: ['De', 'Fecha', 'Para', 'Asunto'],
  },
  it: {
    sent: 'Inviato dal mio Galaxy',
    banner: '-------- Messaggio originale --------',
    labels: ['Da', 'Data', 'A', 'Oggetto'],
  },
  nl: {
    sent: 'Verzonden vanaf mijn Galaxy',
    banner: '-------- Oorspronkelijk bericht --------',
    labels: ['Van', 'Datum', 'Aan', 'Onderwerp'],
  },
  pt: {
    sent: 'Enviado do meu Galaxy',
    banner: '-------- Mensagem original --------',
    labels: ['De', 'Data', 'Para', 'Assunto'],
  },
  pl: {
    sent: 'Wysłane z urządzenia Galaxy',
    banner: '-------- Oryginalna wiadomość --------',
    labels: ['Od', 'Data', 'Do', 'Temat'],
  },
  ru: {
    sent: 'Отправлено с устройства Galaxy',
    banner: '-------- Исходное сообщение --------',
    labels: ['От', 'Дата', 'Кому', 'Тема'],
  },
  tr: {
    sent: "Galaxy'mden gönderildi",
    banner: '-------- Orijinal mesaj --------',
    labels: ['Kimden', 'Tarih', 'Alıcı', 'Konu'],
  },
  ko: {
    sent: '나의 Galaxy에서 보냄',
    banner: '-------- 원본 이메일 --------',
    labels: ['발신', '날짜', '수신', '제목'],
  },
  cs: {
    sent: 'Odesláno z mého zařízení Galaxy',
    banner: '-------- Původní zpráva --------',
    labels: ['Od', 'Datum', 'Komu', 'Předmět'],
  },
}

const galaxyHead = (language: string) => {
  const { labels } = GALAXY[language] as Galaxy
  const values = [
    fill(language, '{a}'),
    '03.03.26  09:14  (GMT+01:00)',
    'agent@inbox.example',
    'Re: 2026-118',
  ]
  return labels.map((label, index) => `${label}: ${values[index]} `)
}

const samsung = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  const { sent, banner } = GALAXY[language] as Galaxy
  return {
    id: `samsung-text-${language}-${length}`,
    text: `${body}\n\n\n${sent}\n\n\n${banner}\n${galaxyHead(language).join('\n')}\n\n${original}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const samsungHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  const { sent, banner } = GALAXY[language] as Galaxy
  const lines = galaxyHead(language).map((line) => `<div>${escaped(line)}</div>`)
  return {
    id: `samsung-html-${language}-${length}`,
    html: `<html><body>${blocks(body, '<div dir="auto">')}<div><br></div><div><br></div><div id="composer_signature"><div style="font-size:85%;color:#575757" dir="auto">${sent}</div></div><div><br></div><div align="left" dir="auto" style="font-size:100%;color:#000000"><div>${banner}</div>${lines.join('')}<div><br></div></div>${blocks(original)}</body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

const K9: Record<string, [string, string]> = {
  en: [
    'On 3 March 2026 09:14:00 CET, {a} wrote:',
    'Sent from my Android device with K-9 Mail. Please excuse my brevity.',
  ],
  de: [
    'Am 3. März 2026 09:14:00 MEZ schrieb {a}:',
    'Diese Nachricht wurde von meinem Android-Gerät mit K-9 Mail gesendet.',
  ],
  fr: [
    'Le 3 mars 2026 09:14:00 GMT+01:00, {a} a écrit :',
    'Envoyé de mon appareil Android avec Courriel K-9 Mail. Veuillez excuser ma brièveté.',
  ],
  pl: ['Dnia 3 marca 2026 09:14:00 CET, {a} napisał/a:', 'Wysłane za pomocą K-9 Mail.'],
  fi: [
    '{a} kirjoitti 3. maaliskuuta 2026 9.14.00 GMT+02:00:',
    'Lähetetty Android-laitteestani K-9 Maililla.',
  ],
  el: [
    'Στις 3 Μαρτίου 2026 09:14:00 π.μ. EET, ο χρήστης {a} έγραψε:',
    'Στάλθηκε από το Android μου με το K-9 Mail.',
  ],
}

const k9 = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  const [head, signature] = K9[language] ?? ['', '']
  return {
    id: `k9-text-${language}-${length}`,
    text: `${body}\n\n${fill(language, head)}\n${quoted(original, '>')}\n\n-- \n${signature}`,
    expected: body,
    tier: tierOf(length),
  }
}

const gmxRows = (language: string, labels: [string, string, string, string], date: string) =>
  [date, fill(language, '"{n}" <{e}>'), 'agent@inbox.example', 'Re: 2026-118'].map(
    (value, index) => [labels[index] ?? '', value] as const,
  )

const GMX: Record<string, [[string, string, string, string], string]> = {
  de: [['Gesendet', 'Von', 'An', 'Betreff'], 'Dienstag, 03. März 2026 um 09:14 Uhr'],
  en: [['Sent', 'From', 'To', 'Subject'], 'Tuesday, March 03, 2026 at 9:14 AM'],
  fr: [['Envoyé', 'De', 'À', 'Objet'], 'mardi 3 mars 2026 à 09:14'],
}

const gmx = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  const [labels, date] = GMX[language] ?? [['', '', '', ''], '']
  const rows = gmxRows(language, labels, date)
  return {
    id: `gmx-text-${language}-${length}`,
    text: `${body}\n\n\n${rows.map(([label, value]) => `${label}: ${value}`).join('\n')}\n\n${original}\n`,
    expected: body,
    tier: tierOf(length),
  }
}

const gmxHtml = (choice: string): ReplyMail => {
  const { language, length, body, original } = chosen(choice)
  const [labels, date] = GMX[language] ?? [['', '', '', ''], '']
  const rows = gmxRows(language, labels, date).map(
    ([label, value]) => `<b>${label}:</b>&nbsp;${escaped(value)}`,
  )
  return {
    id: `gmx-html-${language}-${length}`,
    html: `<html><head></head><body><div style="font-family: Verdana;font-size: 12.0px;">${blocks(body)}<div>&nbsp;<div name="quote" style="margin:10px 5px 5px 10px; padding: 10px 0 10px 10px; border-left:2px solid #C3D9E5;"><div style="margin:0 0 10px 0;">${rows.join('<br/>\n')}</div><div name="quoted-content">${blocks(original)}</div></div></div></div></body></html>`,
    expected: body,
    tier: tierOf(length),
  }
}

const gmxPhone: ReplyMail = {
  id: 'gmx-phone-de',
  text: 'Das Paket ist heute angekommen, alles heil. Danke!\n\n--\nDiese Nachricht wurde von meinem Android Mobiltelefon mit GMX Mail gesendet.\n\nAm 03.03.26, 09:14 schrieb Katrin Vogel <katrin.vogel@tischlerei-vogel.example>:\n\n Guten Tag Herr Brandt,\n\n ist das Paket angekommen?\n\n Katrin Vogel\n',
  expected: 'Das Paket ist heute angekommen, alles heil. Danke!',
  tier: 'core',
}

const mailRu = (length: 'short' | 'long'): ReplyMail => {
  const { body, original, me } = chosen(`ru:${length}`)
  return {
    id: `mailru-text-${length}`,
    text: `${body}\n \n--\n${me}\nОтправлено из Почты Mail\n \n${fill('ru', '>Вторник, 3 марта 2026, 9:14 +03:00 от {a}:')}\n>\n${quoted(original, '>')}\n>`,
    expected: body,
    tier: tierOf(length),
  }
}

const mailRuHtml: ReplyMail = {
  id: 'mailru-html',
  html: fill(
    'ru',
    `<HTML><BODY><div>${broken(chosen('ru').body)}</div><div>&nbsp;</div><div data-signature-widget="container"><div data-signature-widget="content"><div>--<br>{n}</div></div></div><blockquote style="border-left:1px solid #0857A6; margin:10px; padding:0 0 0 10px;">Вторник, 3 марта 2026, 9:14 +03:00 от {n} &lt;{e}&gt;:<br>&nbsp;<div><div>${broken(chosen('ru').original)}</div></div></blockquote></BODY></HTML>`,
  ),
  expected: chosen('ru').body,
  tier: 'core',
}

const yandex = (language: string): ReplyMail => {
  const { body, original } = chosen(`${language}:short`)
  return {
    id: `yandex-text-${language}`,
    text: `${body}\n \n${fill(language, '03.03.2026, 09:14, "{n}" <{e}>:')}\n\n${quoted(original)}`,
    expected: body,
    tier: 'core',
  }
}

const yandexNew: ReplyMail = {
  id: 'yandex-html-ru',
  html: fill(
    'ru',
    `<div><div>${broken(chosen('ru').body)}</div></div><div> </div><div>----------------</div><div>Кому: agent@inbox.example;</div><div>Тема: 2026-118;</div><div>03.03.2026, 09:14, "{n}" &lt;{e}&gt;:</div><blockquote><div>${broken(chosen('ru').original)}</div></blockquote>`,
  ),
  expected: chosen('ru').body,
  tier: 'core',
}
export const regional: ReplyMail[] = [
  ...[
    'en:short',
    'de:long',
    'fr:short',
    'it:short',
    'pt:short',
    'pl:short',
    'ru:short',
    'tr:short',
    'ko:short',
    'cs:short',
  ].map(samsung),
  ...['es:short', 'nl:long', 'fr:long'].map(samsungHtml),
  ...['en:short', 'de:short', 'fr:short', 'pl:short', 'fi:long', 'el:short'].map(k9),
  ...['de:short', 'en:long', 'fr:short'].map(gmx),
  ...['de:long', 'en:short'].map(gmxHtml),
  gmxPhone,
  mailRu('short'),
  mailRu('long'),
  mailRuHtml,
  yandex('ru'),
  yandex('bg'),
  yandexNew,
]
