/**
 * Tests quoted history on the same line as the reply, attribution lines that are cut off, and lines about unknown
 * devices. Also tests sentences that only look like such lines.
 */
import { describe, expect, test } from 'bun:test'
import { replyText } from '../../../../shared/mail/replyText/replyText.ts'

const OWN = 'I will be there at noon.'

/**
 * Returns the writer’s own text, directly followed by the text of `template`. In `template`, each `|` becomes a line
 * end.
 */
const withOwn = (template: string) => `${OWN}${template.replaceAll('|', '\n')}`.trim()

describe('the service removes quoted history that follows the writer’s own text', () => {
  test.each([
    'On Mon, Mar 2, 2026 at 9:14 AM Ann <a@x.test> wrote:|> hi',
    ' Vào Th 2, 2 thg 3, 2026 vào lúc 09:14 Lan <l@x.test> đã viết:|> hi',
    ' ma 2. maalisk. 2026 klo 9.14 Liisa <l@x.test> kirjoitti:|> hi',
    ' --- Ann Nowak <a@x.test> wrote:|> hi',
    ' ---- On Mon, 02 Mar 2026 09:14:00 +0000 Ann Nowak <a@x.test> wrote ----||hi',
    ' Sent from my iPhone On 2 Mar 2026, at 09:14, Ann <a@x.test> wrote: Will you come? Ann',
    ' -----Original Message----- From: Ann <a@x.test> Sent: Monday, March 2, 2026 To: Me Subject: x hi',
    ' ________________________________ From: Ann <a@x.test> Sent: Monday, March 2, 2026 To: Me Subject: x',
    ' ----------|Ann Nowak wrote:|> hi',
    ' *From:* Ann <a@x.test>|*Sent:* Monday, March 2, 2026|*To:* Tom|*Subject:* x||hi',
    '||On Mon, Mar 2, 2026 at',
    '||On 2 Mar 2026, at 09:14, Ann Nowak <a@x',
    '||On Mon, Mar 2, 2026 at 9:14 AM, Ann Nowak <a@x.test>|wrote',
    '||Am 02.03.2026 um 09:14 schrieb Jonas',
    '||ti 3. maalisk. 2026 klo 9.14 Liisa (liisa@posti.',
    '||Anna Kiss <a@x.test> ezt írta (időpont: 2026. márc. 2., H,',
    '||Pada tanggal Sen, 2 Mar 2026 pukul 09.14 Dewi Lest',
    '||王芳 <w@x.test> 于2026年3月2日周一 09:1',
    '||-----Original Mess',
    '||Da: Marta ContiInviato: lunedì 2 marzo 2026 09:14A: PaoloOggetto: Re: x|ciao',
    '||发件人:王芳发送时间:2026年3月2日 9:14收件人:李雷主题:预算|你好',
    '||Date: 2 March 2026From: Ann <a@x.test>To: TomSubject: x||old',
    '|Sent from my Foo 12',
    '||Sent from my Foo 12, sorry for typos',
    '||Trimis de pe Foo-ul meu',
    '||Lähetetty Foo 12:sta',
    '||Foo 12から送信',
    '|\u200b|\ufffc|\u3164|*\u0000',
  ])('the reply text contains only the writer’s own text, without this ending: %s', (template) =>
    expect(replyText(withOwn(template))).toBe(OWN),
  )
})

describe('the service keeps ordinary text that follows the writer’s own text', () => {
  test.each([
    '||On Monday, March 2, 2026 at 9:14 AM, Room Seven',
    '||Am 2. März 2026 um 9:14 Uhr am Bahnhof Altona',
    '||The meeting is on 2 March 2026 at 9:14. Write to Ann <a@x.test>',
    '||Set From: a@x.test, To: b@x.test, Subject: Hello and Date: today in the form.',
    '||Change it to From: Berlin To: Paris Date: 2 March 2026 in the ticket.',
    ' Sign here. ____________________',
    ' The sum is ----- 5',
    ' ---- On Monday, 2 March 2026 at 9:14 the courier rings ----',
    '||On 2 March 2026 at 9.14 write to Ann (a@x.test).',
    '||At 8:15 the porter wrote:|the key is lost.',
    '||The log says.||2026-03-02 09:14:05 mail from <a@x.test>',
    '||Bounced mails:|2026-03-02 09:14 <a@x.test>|2026-03-02 09:15 <b@x.test>',
    '||Sent from London to Paris',
    '||Sent on Monday',
    '||Sent via DHL',
    '||Gesendet mit DHL',
    '||Wysłane do Anny',
    '||Sent from my Berlin office. It arrives on Tuesday.',
    '||Sent from Berlin||The boxes are blue and the lids are green.',
    '||Get the manual for Windows',
    '||Ich habe es mit dem iPhone gesendet',
    '||昨日Suicaを送信',
    '||Word文件已经发送',
    '||To unsubscribe I clicked the link in www.x.test, and nothing came. Can you help?',
    '||--|-- keep ninety days|DELETE FROM logs;',
    ' 🏴󠁧󠁢󠁥󠁮󠁧󠁿',
    ' ❤️',
  ])('the reply text keeps the own text with the ending %s', (template) =>
    expect(replyText(withOwn(template))).toBe(withOwn(template)),
  )
})

test.each([
  'Plan\n\n***\n\nStep one: call.\n\n***\n\nStep two: write.',
  'Done.\n\nSent from my side.\n\nBest\nAnn',
  'Sent from my account: two parcels\n\nBest\nAnn',
  'I wrote to Ann at 9:14 on 3/5/2026:\n\nDear Ann, we agree.',
  'Hello,\n\nOn 5 June 2026 at 14:00 we wrote to bob@x.test:\n\nThe offer stands.',
])(
  'the writer’s own line stays in the reply text, although it resembles a separator, a device line or an attribution: %s',
  (text) => {
    expect(replyText(text)).toBe(text)
  },
)
