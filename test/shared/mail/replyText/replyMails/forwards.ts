/**
 * Holds test mails that are forwarded mails. The reply text keeps a forwarded mail with a comment completely
 * (docs/contract.md §4).
 */
import { broken, chosen, escaped, fill, quoted, type ReplyMail } from './build.ts'

/** Makes a forwarded mail from a comment, a banner, and the header and the text of the mail that is forwarded. */
const forward = (
  id: string,
  comment: string,
  banner: string,
  head: string[],
  body: string,
): ReplyMail => {
  const text = `${comment === '' ? '' : `${comment}\n\n`}${banner}\n${head.join('\n')}\n\n${body}\n`
  return { id, text, expected: text, ...(comment === '' ? {} : { alt: [comment] }), tier: 'policy' }
}

const english = [
  'From: Laura Whitfield <laura.whitfield@harbour-print.example>',
  'Date: Tue, Mar 3, 2026 at 9:14 AM',
  'Subject: Broken lift',
  'To: Owen Hale <owen@office.example>',
]

const forwardsText: ReplyMail[] = [
  forward(
    'forward-gmail-en',
    'Can you answer her, please?',
    '---------- Forwarded message ---------',
    english,
    'The lift is broken since Monday.\n\nLaura',
  ),
  forward(
    'forward-gmail-bare',
    '',
    '---------- Forwarded message ---------',
    english,
    'The lift is broken since Monday.\n\nLaura',
  ),
  forward(
    'forward-apple-en',
    'For your files.',
    'Begin forwarded message:\n',
    english,
    'The lift is broken since Monday.\n\nLaura',
  ),
  forward(
    'forward-thunderbird-de',
    'Bitte übernehmen.',
    '-------- Weitergeleitete Nachricht --------',
    [
      'Betreff: \tDefekter Aufzug',
      'Datum: \tTue, 3 Mar 2026 09:14:00 +0100',
      'Von: \tKatrin Vogel <katrin.vogel@tischlerei-vogel.example>',
      'An: \tjonas@buero.example',
    ],
    'Der Aufzug ist seit Montag defekt.\n\nKatrin Vogel',
  ),
  forward(
    'forward-gmail-fr',
    'Pour information, voir ci-dessous.',
    '---------- Forwarded message ---------',
    [
      'De : Benoît Caron <b.caron@atelier-caron.example>',
      'Date: mar. 3 mars 2026 à 09:14',
      'Subject: Ascenseur en panne',
      'To: Élise Marchand <elise@bureau.example>',
    ],
    "L'ascenseur est en panne depuis lundi.\n\nBenoît",
  ),
  forward(
    'forward-yahoo-es',
    '¿Puedes mirarlo?',
    '----- Mensaje reenviado -----',
    [
      'De: Rodrigo Peña <rodrigo@imprentapena.example>',
      'Para: Marta <marta@oficina.example>',
      'Enviado: martes, 3 de marzo de 2026, 09:14:00 CET',
      'Asunto: Ascensor',
    ],
    'El ascensor no funciona.\n\nRodrigo',
  ),
  forward(
    'forward-proton-en',
    'Please take this one.',
    '------- Forwarded Message -------',
    [
      'From: Laura Whitfield <laura.whitfield@harbour-print.example>',
      'Date: On Tuesday, March 3rd, 2026 at 9:14 AM',
      'Subject: Broken lift',
      'To: owen@office.example <owen@office.example>',
    ],
    '> The lift is broken since Monday.\n> \n> Laura',
  ),
  forward(
    'forward-apple-it',
    'Te lo inoltro.',
    'Inizio messaggio inoltrato:\n',
    [
      'Da: Paolo Conti <paolo.conti@falegnameriaconti.example>',
      'Oggetto: Ascensore guasto',
      'Data: 3 marzo 2026 09:14:00 CET',
      'A: Giulia Ferri <giulia@ufficio.example>',
    ],
    "L'ascensore è guasto da lunedì.\n\nPaolo",
  ),
  forward(
    'forward-gmail-ru',
    'Посмотрите, пожалуйста.',
    '---------- Forwarded message ---------',
    [
      'От: Павел Громов <gromov@tipografia-n.example>',
      'Date: вт, 3 мар. 2026 г. в 09:14',
      'Subject: Лифт',
      'To: Ирина <irina@office.example>',
    ],
    'Лифт не работает с понедельника.\n\nПавел',
  ),
  forward(
    'forward-apple-ja',
    '転送します。ご確認ください。',
    '転送されたメッセージ:\n',
    [
      '差出人: 田中健一 <tanaka@tanaka-insatsu.example>',
      '件名: エレベーター故障',
      '日付: 2026年3月3日 9:14:00 JST',
      '宛先: 佐藤 <sato@office.example>',
    ],
    '月曜日からエレベーターが故障しています。',
  ),
  forward(
    'forward-qq-zh',
    '请处理一下。',
    '------------------ 转发邮件 ------------------',
    [
      '发件人: "王建国" <wang.jianguo@yinshua.example>;',
      '发送时间: 2026年3月3日(星期二) 上午9:14',
      '收件人: "李文静"<li@office.example>;',
      '主题: 电梯故障',
    ],
    '电梯从周一开始坏了。',
  ),
]

const head = (rows: string[]) => rows.map(escaped).join('<br>')

const forwardsHtml: ReplyMail[] = [
  {
    id: 'forward-gmail-html-pt',
    html: `<div dir="ltr"><div>Pode responder a ele?</div><br><div class="gmail_quote gmail_quote_container"><div dir="ltr" class="gmail_attr">---------- Forwarded message ---------<br>De: <strong class="gmail_sendername" dir="auto">Caio Menezes</strong> <span dir="auto">&lt;<a href="mailto:caio@graficamenezes.example">caio@graficamenezes.example</a>&gt;</span><br>Date: ter., 3 de mar. de 2026 às 09:14<br>Subject: Elevador<br>To: Beatriz &lt;bia@escritorio.example&gt;<br></div><br><br><div dir="ltr">O elevador quebrou.</div></div></div>`,
    expected:
      'Pode responder a ele?\n\n---------- Forwarded message ---------\nDe: Caio Menezes <caio@graficamenezes.example>\nDate: ter., 3 de mar. de 2026 às 09:14\nSubject: Elevador\nTo: Beatriz <bia@escritorio.example>\n\nO elevador quebrou.',
    alt: ['Pode responder a ele?'],
    tier: 'policy',
  },
  {
    id: 'forward-thunderbird-html-en',
    html: `<html><body><p>This one is for your team.</p><div class="moz-forward-container"><br><br>-------- Forwarded Message --------<table class="moz-email-headers-table"><tbody><tr><th>Subject: </th><td>Broken lift</td></tr><tr><th>Date: </th><td>Tue, 3 Mar 2026 09:14:00 +0000</td></tr><tr><th>From: </th><td>Laura Whitfield &lt;laura.whitfield@harbour-print.example&gt;</td></tr></tbody></table><br><p>The lift is broken.</p></div></body></html>`,
    expected:
      'This one is for your team.\n\n-------- Forwarded Message --------\nSubject: Broken lift\nDate: Tue, 3 Mar 2026 09:14:00 +0000\nFrom: Laura Whitfield <laura.whitfield@harbour-print.example>\n\nThe lift is broken.',
    alt: ['This one is for your team.'],
    tier: 'policy',
  },
  {
    id: 'forward-apple-html-de',
    html: `<html><body><div>Magst du das beantworten?</div><div><br><blockquote type="cite"><div>Anfang der weitergeleiteten Nachricht:</div><br><div>${head(['Von: Katrin Vogel <katrin.vogel@tischlerei-vogel.example>', 'Betreff: Aufzug', 'Datum: 3. März 2026 um 09:14:00 MEZ', 'An: jonas@buero.example'])}</div><br><div>${broken('Der Aufzug ist kaputt.')}</div></blockquote></div></body></html>`,
    expected:
      'Magst du das beantworten?\n\nAnfang der weitergeleiteten Nachricht:\nVon: Katrin Vogel <katrin.vogel@tischlerei-vogel.example>\nBetreff: Aufzug\nDatum: 3. März 2026 um 09:14:00 MEZ\nAn: jonas@buero.example\n\nDer Aufzug ist kaputt.',
    alt: [
      'Magst du das beantworten?',
      'Magst du das beantworten?\n\n> Anfang der weitergeleiteten Nachricht:\n>\n> Von: Katrin Vogel <katrin.vogel@tischlerei-vogel.example>\n> Betreff: Aufzug\n> Datum: 3. März 2026 um 09:14:00 MEZ\n> An: jonas@buero.example\n>\n> Der Aufzug ist kaputt.',
    ],
    tier: 'policy',
  },
]

/** Makes a forwarded conversation, in which the forwarded mail quotes an older mail. */
const forwardedThread: ReplyMail = (() => {
  const { original, short } = chosen('sv')
  const text = `Kan du ta hand om detta?\n\n---------- Forwarded message ---------\n${fill('sv', 'Från: {a}')}\nDate: tis 3 mars 2026 kl 09:14\nSubject: Förslag\nTo: Elin <elin@kontor.example>\n\n${original}\n\nDen mån 2 mars 2026 kl 16:40 skrev Elin <elin@kontor.example>:\n\n${quoted(short)}\n`
  return {
    id: 'forward-thread-sv',
    text,
    expected: text,
    alt: ['Kan du ta hand om detta?'],
    tier: 'policy',
  }
})()

export const forwards: ReplyMail[] = [...forwardsText, ...forwardsHtml, forwardedThread]
