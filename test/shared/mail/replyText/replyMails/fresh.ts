/** Holds test mails that only seem to contain a quote, and mails with tickets, disclaimers and signatures. */
import { broken, chosen, fill, quoted, type ReplyMail, wrap } from './build.ts'

/** Makes test mails that contain no quote. */
const whole = (id: string, text: string): ReplyMail => ({
  id: `whole-${id}`,
  text,
  expected: text,
  tier: 'core',
})

const wholes: ReplyMail[] = [
  whole(
    'meeting',
    'On Monday, March 2, 2026 at 10:00 the board met. Anna wrote:\nthe minutes are ready.\n\nPlease read them before Friday.',
  ),
  whole(
    'said',
    'Our lawyer said on 3 March 2026 the following:\n\nThe contract ends in June. Nothing has to be signed.\n\nI agree with her.',
  ),
  whole(
    'form',
    'New contact request\n\nName: Pia Lund\nEmail: pia.lund@firma.example\nPhone: +45 5550 1234\nSubject: Workshop in May\nMessage: Do you still have two places?',
  ),
  whole(
    'form-de',
    'Neue Anfrage über das Formular\n\nVon: Pia Lund\nE-Mail: pia@firma.example\nDatum: 03.03.2026\nNachricht: Gibt es noch zwei Plätze?',
  ),
  whole(
    'shell',
    'The build fails with:\n\n> npm run build\n> tsc -p .\nerror TS2304: Cannot find name.\n\nDo you know this error?',
  ),
  whole(
    'rule',
    'Part one is done.\n\n----------\n\nPart two needs a week. From then on we test daily.',
  ),
  whole(
    'route',
    'From: Hamburg\nTo: Lyon\nDate: 12 April\n\nPlease book two seats by the window, and send me the tickets as PDF.',
  ),
  whole(
    'diff',
    'I changed this line:\n\n-- old: retries = 3\n++ new: retries = 5\n\nIs that fine with you?',
  ),
  whole(
    'phone-app',
    'The text "Sent from my iPhone" appears twice in our template. Please remove one.',
  ),
  whole(
    'dates',
    'Am 3. März schrieb ich Ihnen wegen der Heizung: bis heute kam keine Antwort.\n\nBitte melden Sie sich bis Freitag.',
  ),
  whole(
    'french-date',
    'Le 3 mars, nous avons écrit à la mairie : aucune réponse.\n\nPouvez-vous relancer ?',
  ),
  whole('spanish-list', 'De: Madrid\nA: Sevilla\n\nEl precio es 45 euros. ¿Reservo?'),
  whole(
    'dash-list',
    'Needed:\n- 40 chairs\n- 6 tables\n-- two of them round\n- a screen\n\nCan you confirm today?',
  ),
  whole(
    'original-message',
    'Your customer asks for the original message. I do not have it; do you?\n\nIt had three photos.',
  ),
  whole(
    'regards',
    'Regards from Lisbon! The fair was good.\n\nThanks to your samples we found two buyers. Details follow on Monday.',
  ),
  whole(
    'quote-own',
    'The lease says in §4:\n\n> The tenant pays by the third day of each month.\n\nSo the fee is not due. Please cancel it.',
  ),
  whole(
    'order',
    'Order 5521\n\nSent: 3 March 2026\nTo: Mill Lane 4, Leeds\n\n2 x desk lamp\n1 x shelf\n\nThe shelf is missing. When will it come?',
  ),
  whole(
    'markdown',
    '# Weekly report\n\n---\n\n**Done**\n\n* audit of the store room\n* new labels\n\n---\n\n**Next**\n\n* move the archive',
  ),
  whole(
    'japanese-form',
    'お問い合わせ\n\n件名: 在庫について\n日付: 2026年3月3日\n\n在庫はまだありますか。',
  ),
  whole(
    'russian',
    'Тема: отпуск\n\nС 3 марта меня нет на месте. Павел пишет отчёт вместо меня.\n\nС вопросами звоните ему.',
  ),
  {
    id: 'whole-html-own-blockquote',
    html: '<p>The standard is clear:</p><blockquote><p>A client must not retry at once.</p></blockquote><p>So please raise the delay to a minute.</p>',
    expected:
      'The standard is clear:\n\nA client must not retry at once.\n\nSo please raise the delay to a minute.',
    alt: [
      'The standard is clear:\n\n> A client must not retry at once.\n\nSo please raise the delay to a minute.',
    ],
    tier: 'policy',
  },
  {
    id: 'whole-html-rule',
    html: '<div>Agenda for May</div><hr><div>Paint the hall</div><hr><div>Order chairs</div>',
    expected: 'Agenda for May\nPaint the hall\nOrder chairs',
    alt: ['Agenda for May\n---\nPaint the hall\n---\nOrder chairs'],
    tier: 'policy',
  },
  {
    id: 'whole-html-table',
    html: '<p>New booking</p><table><tr><td><b>From:</b></td><td>12 May</td></tr><tr><td><b>To:</b></td><td>15 May</td></tr><tr><td><b>Guests:</b></td><td>2</td></tr></table><p>Please confirm.</p>',
    expected: 'New booking\n\nFrom: 12 May\nTo: 15 May\nGuests: 2\n\nPlease confirm.',
    tier: 'core',
  },
]

const LINE = '##- Please type your reply above this line -##'

const tickets: ReplyMail[] = [
  {
    id: 'ticket-above-line-en',
    text: `The printer works again, you can close this.\n\nOn Tue, Mar 3, 2026 at 9:14 AM Harbour Support <support@harbour-print.example>\nwrote:\n\n> ${LINE}\n>\n> Your request (5521) has been updated.\n>\n> Laura, 3 Mar 2026, 09:14 GMT\n> Does it still jam?\n`,
    expected: 'The printer works again, you can close this.',
    tier: 'core',
  },
  {
    id: 'ticket-above-line-unmarked',
    text: `It still jams, now on tray two.\n\n${LINE}\n\nYour request (5521) has been updated.\n\nLaura\nDoes it still jam?\n`,
    expected: 'It still jams, now on tray two.',
    tier: 'core',
  },
  {
    id: 'ticket-above-line-de',
    text: 'Läuft wieder, vielen Dank.\n\n##- Bitte geben Sie Ihre Antwort oberhalb dieser Zeile ein -##\n\nIhre Anfrage (5521) wurde aktualisiert.\n\nKatrin\nTritt der Fehler noch auf?\n',
    expected: 'Läuft wieder, vielen Dank.',
    tier: 'core',
  },
  {
    id: 'ticket-jira',
    text: 'Approved, please go ahead.\n\n—-—-—-—\nReply above this line.\n\nOwen Hale commented:\nMay we deploy on Friday?\n\nView request · Turn off notifications\n',
    expected: 'Approved, please go ahead.',
    tier: 'core',
  },
  {
    id: 'ticket-helpscout',
    text: 'Both labels arrived. Thank you!\n\n--- Reply above this line ---\n\nLaura replied:\n\nDid the labels arrive?\n',
    expected: 'Both labels arrived. Thank you!',
    tier: 'core',
  },
  {
    id: 'ticket-html',
    html: '<div dir="ltr">Please close it, the part is here.</div><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">On Tue, Mar 3, 2026 at 9:14 AM Support &lt;support@harbour-print.example&gt; wrote:<br></div><blockquote class="gmail_quote"><p style="color:#b5b5b5">##- Please type your reply above this line -##</p><p>Your request (5521) has been updated.</p></blockquote></div>',
    expected: 'Please close it, the part is here.',
    tier: 'core',
  },
  {
    id: 'ticket-github',
    text: wrap('Reproduced on 2.4, I am on it.', 72).concat(
      '\n\nOn Tue, Mar 3, 2026 at 9:14 AM laurawh ***@***.***> wrote:\n\n> The parser drops the last row.\n>\n> —\n> Reply to this email directly, view it on GitHub\n> <https://github.example/o/r/issues/7>, or unsubscribe\n> <https://github.example/unsubscribe>.\n> You are receiving this because you commented.Message ID:\n> ***@***.***>\n>\n',
    ),
    expected: 'Reproduced on 2.4, I am on it.',
    tier: 'core',
  },
]

const disclaimer = (id: string, body: string, note: string, rest = ''): ReplyMail => ({
  id: `disclaimer-${id}`,
  text: `${body}\n\n${note}\n${rest}`,
  expected: body,
  ...(rest === '' ? { alt: [`${body}\n\n${note}`] } : {}),
  tier: 'policy',
})

const disclaimers: ReplyMail[] = [
  disclaimer(
    'en',
    'The second draft is signed.',
    'CONFIDENTIALITY NOTICE: This e-mail and any attachments are confidential and intended solely for the addressee. If you are not the intended recipient, please delete this message.',
  ),
  disclaimer(
    'de',
    'Der Vertrag ist unterschrieben.',
    'Diese E-Mail enthält vertrauliche Informationen. Wenn Sie nicht der richtige Adressat sind, informieren Sie bitte den Absender und vernichten Sie diese Mail.',
  ),
  disclaimer(
    'fr',
    'Le contrat est signé.',
    'Ce message et ses pièces jointes sont confidentiels et destinés exclusivement à leurs destinataires. Si vous avez reçu ce message par erreur, merci de le supprimer.',
    '\nDe : Benoît Caron <b.caron@atelier-caron.example>\nEnvoyé : mardi 3 mars 2026 09:14\nÀ : agent@inbox.example\nObjet : Contrat\n\nBonjour, avez-vous signé ?\n',
  ),
  disclaimer(
    'print',
    'Fine for me, go ahead.',
    'Please consider the environment before printing this e-mail.',
    '\nFrom: Laura Whitfield <laura.whitfield@harbour-print.example>\nSent: Tuesday, March 3, 2026 9:14 AM\nTo: agent@inbox.example\nSubject: Proof\n\nMay we print?\n',
  ),
]

/** Makes test mails with a banner at the top. The recipient's mail gateway adds such a banner to mail from outside. */
const external: ReplyMail = {
  id: 'external-banner',
  text: 'The gate code is 4471.\n\nFrom: Laura Whitfield <laura.whitfield@harbour-print.example>\nSent: Tuesday, March 3, 2026 9:14 AM\nTo: Owen Hale <owen@office.example>\nSubject: [EXTERNAL] Gate\n\nCAUTION: This email originated from outside the organization.\n\nWhich code opens the gate?\n',
  expected: 'The gate code is 4471.',
  tier: 'core',
}

const signature = (id: string, body: string, sign: string, rest = ''): ReplyMail => ({
  id: `signature-${id}`,
  text: `${body}\n\n${sign}\n${rest}`,
  expected: body,
  tier: 'core',
})

const signatures: ReplyMail[] = [
  signature(
    'dashes',
    'We meet at the north gate.',
    '-- \nOwen Hale\nFacility Manager | Office Ltd\n+44 20 7946 0123',
  ),
  signature(
    'dashes-no-space',
    'Wir treffen uns am Nordtor.',
    '--\nJonas Brandt\nHausverwaltung\nTel. 030 5550 1234',
  ),
  signature('em-dash', 'I will bring the keys.', '—\nOwen Hale\nOffice Ltd'),
  signature(
    'underscores',
    'The parcel is at the front desk.',
    '______________________\nOwen Hale\nOffice Ltd, Leeds\nowen@office.example',
  ),
  signature('mail-ru', 'Ключи у охраны.', '--\nИрина Белова\nОфис-менеджер\n+7 495 555-01-23'),
  signature('android', 'Tack, det är löst nu.', 'Skickat från min Android-telefon'),
  signature('huawei', 'El paquete ha llegado.', 'Enviado desde mi teléfono Huawei'),
  signature('xiaomi', 'Посылка пришла.', 'Отправлено с моего Xiaomi'),
  signature('yahoo-iphone', 'I am on my way.', 'Sent from Yahoo Mail for iPhone'),
  signature('mobile-gmail', 'Ci vediamo alle tre.', 'Inviato da Gmail Mobile'),
  signature('windows', 'Merci, bien reçu.', 'Envoyé à partir de Courrier pour Windows'),
  signature(
    'blackberry',
    'De accord met de prijs.',
    'Verzonden vanaf mijn BlackBerry 10-smartphone.',
  ),
]

/**
 * Makes a reply in the form of a desktop mail program. This reply quotes an earlier reply in the form of a webmail
 * program.
 */
const mixed: ReplyMail[] = ['nl', 'cs', 'da'].map((language) => {
  const { body, original } = chosen(`${language}:short`)
  const lower = quoted(original)
  return {
    id: `mixed-${language}`,
    text: `${body}\n\n-----Original Message-----\n${fill(language, 'From: {a}')}\nSent: Tuesday, March 3, 2026 9:14 AM\nTo: agent@inbox.example\nSubject: 2026-118\n\n${original}\n\n${fill(language, 'On Mon, Mar 2, 2026 at 4:40 PM {m} <agent@inbox.example> wrote:')}\n\n${lower}\n`,
    expected: body,
    tier: 'core',
  }
})

/** Makes an HTML reply that begins with a short line and a list. */
const rich: ReplyMail = {
  id: 'rich-html-list',
  html: `<div dir="ltr"><div>Three things:</div><ol><li>keys are with the guard</li><li>the lift works</li><li>parking is free</li></ol><div>See you!</div></div><br><div class="gmail_quote"><div class="gmail_attr">On Tue, 3 Mar 2026 at 09:14, Laura &lt;laura@x.example&gt; wrote:<br></div><blockquote class="gmail_quote">${broken('Anything to know?\n\nLaura')}</blockquote></div>`,
  expected:
    'Three things:\n\n1. keys are with the guard\n2. the lift works\n3. parking is free\n\nSee you!',
  alt: [
    'Three things:\n\nkeys are with the guard\nthe lift works\nparking is free\n\nSee you!',
    'Three things:\n\n- keys are with the guard\n- the lift works\n- parking is free\n\nSee you!',
  ],
  tier: 'policy',
}

export const fresh: ReplyMail[] = [
  ...wholes,
  ...tickets,
  ...disclaimers,
  external,
  ...signatures,
  ...mixed,
  rich,
]
