/** Holds plain-text replies that relays, mailing lists, virus scanners and hasty writers have damaged. */
import type { ReplyMail } from './build.ts'

type Row = [id: string, text: string, expected: string, ...alt: string[]]

const core: Row[] = [
  [
    'bat-en',
    'Hello Laura,\n\nTuesday, March 3, 2026, 9:14:00 AM, you wrote:\n\n> Which door shall we use?\n\nThe one in the yard.\n\n-- \nBest regards,\n Owen                            mailto:owen@office.example\n',
    'Hello Laura,\n\n> Which door shall we use?\n\nThe one in the yard.',
    'Hello Laura,\n\nThe one in the yard.',
    'Hello Laura,\n\nTuesday, March 3, 2026, 9:14:00 AM, you wrote:\n\n> Which door shall we use?\n\nThe one in the yard.',
  ],
  [
    'flowed-broken',
    'Forty copies, please.\n\nOn 3/3/2026 9:14 AM, Laura Whitfield wrote:\n> We can print as many copies as you like, but we need to know the number\nby noon.\n> Which size do you want, and which paper shall we take for the cover\nof it?\n> Laura\n',
    'Forty copies, please.',
  ],
  [
    'no-attribution',
    'The yard door, please.\n\n> Which door shall we use?\n> Laura\n',
    'The yard door, please.',
  ],
  [
    'no-gap',
    'The yard door, please.\nOn Tue, Mar 3, 2026 at 9:14 AM Laura Whitfield <laura@print.example> wrote:\n> Which door shall we use?',
    'The yard door, please.',
  ],
  [
    'wrapped-thrice',
    'Agreed.\n\nOn Tuesday, 3 March 2026 at 09:14:00 GMT, Laura Whitfield of Harbour\nPrint and Copy Limited, Leeds\n<laura.whitfield@harbour-print.example>\nwrote:\n\n> Do you agree?\n',
    'Agreed.',
  ],
  [
    'marked-outlook',
    'Agreed.\n\n> From: Laura Whitfield <laura@print.example>\n> Sent: Tuesday, March 3, 2026 9:14 AM\n> To: agent@inbox.example\n> Subject: Proof\n>\n> Do you agree?\n',
    'Agreed.',
  ],
  [
    'bars',
    'The yard door, please.\n\nOn 3 Mar 2026, Laura Whitfield wrote:\n| Which door shall we use?\n| Laura\n',
    'The yard door, please.',
  ],
  [
    'spaced-marks',
    'The yard door, please.\n\nOn 3 Mar 2026, Laura wrote:\n > Which door shall we use?\n > > the front or the yard?\n',
    'The yard door, please.',
  ],
  [
    'nested-first',
    'We take the blue one.\n\nOn Tue, Mar 3, 2026 at 9:14 AM Laura <laura@print.example> wrote:\n\n>> On Mon, Mar 2, 2026 at 4:40 PM Owen <owen@office.example> wrote:\n>> Which colours do you have?\n>\n> Blue and green.\n',
    'We take the blue one.',
  ],
  [
    'bottom-two-paragraphs',
    'On 3/3/2026 9:14 AM, Laura Whitfield wrote:\n> Which door shall we use?\n> Laura\n\nThe yard door.\n\nPlease ring twice: the bell is weak.\n',
    'The yard door.\n\nPlease ring twice: the bell is weak.',
  ],
  [
    'bottom-attribution-de',
    'Am 03.03.26 um 09:14 schrieb Katrin Vogel:\n> Welche Farbe?\n\nEiche hell, bitte.\n\n-- \nJonas Brandt\n',
    'Eiche hell, bitte.',
  ],
  [
    'bottom-gmail',
    'On Tue, Mar 3, 2026 at 9:14 AM Laura Whitfield <laura@print.example>\nwrote:\n\n> Which door shall we use?\n>\n> Laura\n\nThe yard door.',
    'The yard door.',
  ],
  [
    'between',
    'Short answer: yes.\n\nOn 3/3/2026 9:14 AM, Laura wrote:\n> May we start?\n\n-- \nOwen Hale\nOffice Ltd\n',
    'Short answer: yes.',
  ],
  [
    'list-footer',
    'The hall is free on Sunday.\n\nOn 3/3/2026 9:14 AM, Laura wrote:\n> Is the hall free?\n_______________________________________________\nHall mailing list\nHall@lists.town.example\nhttps://lists.town.example/mailman/listinfo/hall\n',
    'The hall is free on Sunday.',
  ],
  [
    'groups-footer',
    'The hall is free on Sunday.\n\n-- \nYou received this message because you are subscribed to the Google Groups "hall" group.\nTo unsubscribe from this group and stop receiving emails from it, send an email to hall+unsubscribe@googlegroups.com.\n',
    'The hall is free on Sunday.',
  ],
  [
    'mailman-fresh',
    'The hall is free on Sunday.\n_______________________________________________\nHall mailing list -- hall@lists.town.example\nTo unsubscribe send an email to hall-leave@lists.town.example\n',
    'The hall is free on Sunday.',
  ],
  [
    'signature-then-outlook',
    'Six shelves.\n\n-- \nJonas Brandt\nTel. 030 5550 1234\n\nVon: Katrin Vogel <k@vogel.example>\nGesendet: Dienstag, 3. März 2026 09:14\nAn: Jonas Brandt <j@buero.example>\nBetreff: Regale\n\nWie viele?\n',
    'Six shelves.',
  ],
  [
    'setext',
    'Minutes\n-------\n\nWe agreed on May.\n\nNext steps\n----------\n\nLaura prints the cards.\n\nOn Tue, Mar 3, 2026 at 9:14 AM Laura <laura@print.example> wrote:\n\n> What was agreed?\n',
    'Minutes\n-------\n\nWe agreed on May.\n\nNext steps\n----------\n\nLaura prints the cards.',
  ],
  [
    'table',
    'Item      | Count\n--------- | -----\nShelf     | 6\nLamp      | 2\n\nPlease confirm.\n\nFrom: Laura Whitfield <laura@print.example>\nSent: Tuesday, March 3, 2026 9:14 AM\nTo: agent@inbox.example\nSubject: Order\n\nHow many?\n',
    'Item | Count\n--------- | -----\nShelf | 6\nLamp | 2\n\nPlease confirm.',
  ],
  [
    'said-above',
    'Laura wrote on Monday: "we need a week". Is that still true?\n\nOn Tue, Mar 3, 2026 at 9:14 AM Support <s@print.example> wrote:\n\n> Anything else?\n',
    'Laura wrote on Monday: "we need a week". Is that still true?',
  ],
  [
    'from-sentence',
    'From my side all is ready.\nTo be sure: which date did you mean?\n\nFrom: Laura <laura@print.example>\nSent: Tuesday, March 3, 2026 9:14 AM\nTo: agent@inbox.example\nSubject: Date\n\nThe date is fixed.\n',
    'From my side all is ready.\nTo be sure: which date did you mean?',
  ],
  [
    'own-numbers',
    '1. yes\n2. no\n3. only on Monday\n\nOn Mar 3, 2026, at 9:14 AM, Laura <laura@print.example> wrote:\n\n1. Shall we print?\n2. In colour?\n3. When?\n',
    '1. yes\n2. no\n3. only on Monday',
  ],
  [
    'one-word',
    'Ok\n\nOn Tue, Mar 3, 2026 at 9:14 AM Laura <laura@print.example> wrote:\n\n> Ok?\n',
    'Ok',
  ],
  [
    'emoji',
    '👍\n\nVon meinem iPhone gesendet\n\n> Am 03.03.2026 um 09:14 schrieb Katrin <k@vogel.example>:\n> \n> Passt das?\n',
    '👍',
  ],
  [
    'code',
    'STOP\n\n> On 3 Mar 2026, at 09:14, Laura <laura@print.example> wrote:\n> \n> Reply STOP to end.\n',
    'STOP',
  ],
  [
    'quoted-device',
    'Yes.\n\nOn Tue, Mar 3, 2026 at 9:14 AM Laura <laura@print.example> wrote:\n\n> May we start?\n>\n> Sent from my iPhone\n>\n',
    'Yes.',
  ],
  [
    'link-name',
    'Done, see https://print.example/orders/5521?from=mail&to=you for the state.\n\nOn 3/3/26 09:14, Laura wrote:\n> State?\n',
    'Done, see https://print.example/orders/5521?from=mail&to=you for the state.',
  ],
  [
    'crlf-tabs',
    'Agreed.\r\n\r\n\r\n\t-----Original Message-----\r\n\tFrom:\tLaura Whitfield [mailto:laura@print.example]\r\n\tSent:\tTuesday, March 3, 2026 9:14 AM\r\n\tTo:\tOwen Hale\r\n\tSubject:\tProof\r\n\r\n\tDo you agree?\r\n',
    'Agreed.',
  ],
  [
    'date-first-head',
    'Agreed.\n\nDate: Tue, 3 Mar 2026 09:14:00 +0000\nFrom: laura@print.example\nTo: agent@inbox.example\nSubject: Proof\n\nDo you agree?\n',
    'Agreed.',
  ],
  [
    'subject-first-head',
    'Agreed.\n\nSubject: Proof\nFrom: laura@print.example\nTo: agent@inbox.example\nDate: Tue, 3 Mar 2026 09:14:00 +0000\n\nDo you agree?\n',
    'Agreed.',
  ],
  [
    'indented-quote',
    'Agreed.\n\nLaura Whitfield <laura@print.example> wrote:\n\n  Do you agree?\n\n  Laura\n',
    'Agreed.',
  ],
  [
    'name-wrote-date',
    'Agreed.\n\nLaura Whitfield wrote on 3/3/2026 9:14 AM:\n> Do you agree?\n',
    'Agreed.',
  ],
  [
    'in-message',
    'Agreed.\n\nIn message <81f0@print.example>, Laura Whitfield writes:\n> Do you agree?\n',
    'Agreed.',
  ],
  [
    'dashes-name',
    'Agreed.\n\n--- Laura Whitfield <laura@print.example> wrote:\n\n> Do you agree?\n',
    'Agreed.',
  ],
  [
    'iso-zone',
    'Agreed.\n\nOn 2026-03-03T09:14:00+01:00, Laura Whitfield wrote:\n> Do you agree?\n',
    'Agreed.',
  ],
  [
    'weekday-only-ru',
    'Согласна.\n\nво вторник, 3 марта 2026 г. в 09:14:00 GMT+3, Павел <p@t.example> написал(а):\n\n> Согласны?\n',
    'Согласна.',
  ],
  [
    'you-wrote-fr',
    "D'accord.\n\nLe mar. 3 mars 2026 à 09:14, Caron, Benoît (Atelier) <b.caron@atelier-caron.example>\na écrit :\n\n> D'accord ?\n",
    "D'accord.",
  ],
  [
    'pgp',
    '-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nThe key is under the mat.\n-----BEGIN PGP SIGNATURE-----\n\niQEzBAEBCAAdFiEE0000000000000000000000000000000000000000\n=abcd\n-----END PGP SIGNATURE-----\n',
    'The key is under the mat.',
    '-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nThe key is under the mat.',
  ],
]

export const messy: ReplyMail[] = core.map(([id, text, expected, ...alt]) => ({
  id: `messy-${id}`,
  text,
  expected,
  alt,
  tier: 'core',
}))
