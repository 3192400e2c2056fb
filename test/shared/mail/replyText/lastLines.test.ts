/**
 * Tests that the last line of a reply stays whole directly above the quoted history of many mail programs. The replies
 * end with numbers, dates, lists and words that also stand in attributions.
 */
import { expect, test } from 'bun:test'
import { replyText } from '../../../../shared/mail/replyText/replyText.ts'

const REPLIES = [
  'Yes',
  'Ok, see you at 10:30',
  'The total is 1,200.50 EUR',
  'Yes!\n\n1. first\n2. second',
  'Please note:\n- a\n- b',
  'On Monday I wrote to you:\nplease read it',
  'My number: +1 555 0123',
  'See https://example.com/a?b=1',
  'He wrote: no',
  'From: my side it is fine',
  'Sent it yesterday',
  'What about 2026?',
  'Am Montag um 10 Uhr passt',
  'Le 5 mai est bien',
  'Call me\n\nAnn',
  'Version 3.2',
  'I will be there at 9',
  'Invoice 2026-12 is paid',
  'The code is 482913',
  'Room A / 3rd floor',
  '5pm works',
  '10.5.',
  'Ja',
  '👍',
  'Thanks Bob, on it',
  'Do you have it?',
  '...',
]

const HISTORIES: readonly (readonly [program: string, text: string])[] = [
  ['Gmail', 'On Tue, May 5, 2026 at 10:30 AM Bob Lee <bob@example.com> wrote:\n\n> Hello\n> there'],
  [
    'Gmail, wrapped',
    'On Tue, May 5, 2026 at 10:30 AM Robert Longname <robert.longname@subdomain.example.com>\nwrote:\n\n> Hello',
  ],
  ['Apple Mail', 'On 5 May 2026, at 10:30, Bob Lee <bob@example.com> wrote:\n\n> Hello'],
  [
    'Apple Mail, quoted',
    '> On 5 May 2026, at 10:30, Bob Lee <bob@example.com> wrote:\n> \n> Hello',
  ],
  ['Thunderbird', 'On 5/5/26 10:30, Bob Lee wrote:\n> Hello'],
  [
    'Outlook, with a title',
    '-----Original Message-----\nFrom: Bob Lee <bob@example.com>\nSent: Tuesday, May 5, 2026 10:30 AM\nTo: Ann <ann@example.com>\nSubject: Hi\n\nHello',
  ],
  [
    'Outlook, with a header block',
    'From: Bob Lee <bob@example.com>\nSent: Tuesday, May 5, 2026 10:30 AM\nTo: Ann <ann@example.com>\nSubject: Hi\n\nHello',
  ],
  [
    'Outlook, with a rule',
    '________________________________\nFrom: Bob Lee <bob@example.com>\nSent: Tuesday, May 5, 2026 10:30 AM\nTo: Ann <ann@example.com>\nSubject: Hi\n\nHello',
  ],
  [
    'Proton Mail',
    'Sent with Proton Mail secure email.\n\nOn Tuesday, May 5th, 2026 at 10:30 AM, Bob Lee <bob@example.com> wrote:\n\n> Hello',
  ],
  [
    'Yahoo',
    'On Tuesday, May 5, 2026 at 10:30:12 AM GMT+2, Bob Lee <bob@example.com> wrote:\n\n Hello',
  ],
  ['Thunderbird in German', 'Am 05.05.2026 um 10:30 schrieb Bob Lee <bob@example.com>:\n> Hallo'],
  [
    'Gmail in German',
    'Am Di., 5. Mai 2026 um 10:30 Uhr schrieb Bob Lee <bob@example.com>:\n\n> Hallo',
  ],
  [
    'Outlook in German',
    'Von: Bob Lee <bob@example.com>\nGesendet: Dienstag, 5. Mai 2026 10:30\nAn: Ann <ann@example.com>\nBetreff: Hi\n\nHallo',
  ],
  [
    'Gmail in French',
    'Le mar. 5 mai 2026 à 10:30, Bob Lee <bob@example.com> a écrit :\n\n> Bonjour',
  ],
  [
    'Gmail in Spanish',
    'El mar, 5 may 2026 a las 10:30, Bob Lee (<bob@example.com>) escribió:\n\n> Hola',
  ],
  [
    'Gmail in Italian',
    'Il giorno mar 5 mag 2026 alle ore 10:30 Bob Lee <bob@example.com> ha scritto:\n\n> Ciao',
  ],
  [
    'Gmail in Portuguese',
    'Em ter., 5 de mai. de 2026 às 10:30, Bob Lee <bob@example.com> escreveu:\n\n> Olá',
  ],
  ['Gmail in Japanese', '2026年5月5日(火) 10:30 Bob Lee <bob@example.com>:\n\n> こんにちは'],
  ['Gmail in Chinese', 'Bob Lee <bob@example.com> 于2026年5月5日周二 10:30写道：\n\n> 你好'],
  ['Gmail in Russian', 'вт, 5 мая 2026 г. в 10:30, Bob Lee <bob@example.com>:\n\n> Привет'],
  [
    'iPhone',
    'Sent from my iPhone\n\n> On May 5, 2026, at 10:30 AM, Bob Lee <bob@example.com> wrote:\n> \n> Hello',
  ],
  ['no date', 'Bob Lee <bob@example.com> wrote:\n\n> Hello'],
  ['Gmail in Dutch', 'Op di 5 mei 2026 om 10:30 schreef Bob Lee <bob@example.com>:\n\n> Hallo'],
]

test.each(HISTORIES)(
  'the reply text keeps the whole reply above the quoted history: %s',
  (_program, history) => {
    const changed = REPLIES.flatMap((own) =>
      ['\n\n', '\n']
        .map((gap) => [own, replyText(own + gap + history)])
        .filter(([, text]) => text !== own),
    )
    expect(changed).toEqual([])
  },
)
