/**
 * Tests attribution lines (such as "On Monday, Ann wrote:") in the forms of mail clients. The mail texts around these
 * lines were written for these tests.
 */
import { describe, expect, test } from 'bun:test'
import { replyText } from '../../../../shared/mail/replyText/replyText.ts'

const OWN = 'Yes, Tuesday works.\nSee you there!'

/**
 * Returns the reply text of a mail that has the text of `template` below the writer’s own text. In `template`, each `|`
 * becomes a line end.
 */
const below = (template: string) => replyText(`${OWN}\n\n${template.replaceAll('|', '\n')}`)

describe('the service removes an attribution line ("Ann wrote:") from the reply text', () => {
  const attributions = [
    'On Wed, Oct 8, 2014 at 10:33 AM, Bob Lee <bob@example.com> wrote:',
    'On Oct 8, 2014, at 10:33 AM, Bob <bob@example.com> wrote:',
    'On 08.10.2014 10:33, Bob Lee wrote:',
    '---- On Wed, 08 Oct 2014 10:33:00 +0200 Bob Lee <bob@example.com> wrote ----',
    'Bob Lee <bob@example.com> wrote on 08/10/2014 10:33:12:',
    '2014-10-08 10:33 GMT+02:00 Bob Lee <bob@example.com>:',
    '08.10.2014, 10:33, "Bob Lee" <bob@example.com>:',
    '* Bob Lee <bob@example.com> [2014-10-08 10:33]:',
    'Quoting Bob Lee <bob@example.com>:',
    'Am Mi., 8. Okt. 2014 um 10:33 Uhr schrieb Bob Lee <bob@example.com>:',
    'Am 08.10.2014 um 10:33 schrieb Bob Lee:',
    'Le mer. 8 oct. 2014 à 10:33, Bob Lee <bob@example.com> a écrit :',
    'El mié, 8 oct 2014 a las 10:33, Bob Lee (<bob@example.com>) escribió:',
    'Em qua., 8 de out. de 2014 às 10:33, Bob Lee <bob@example.com> escreveu:',
    'Il giorno mer 8 ott 2014 alle ore 10:33 Bob Lee <bob@example.com> ha scritto:',
    'Op 8 okt. 2014 om 10:33 heeft Bob Lee <bob@example.com> het volgende geschreven:',
    'śr., 8 paź 2014 o 10:33 Bob Lee <bob@example.com> napisał(a):',
    'Wiadomość napisana przez Bob Lee <bob@example.com> w dniu 8 paź 2014, o godz. 10:33:',
    '8 окт. 2014 г., в 10:33, Bob Lee <bob@example.com> написал(а):',
    'ср, 8 жовт. 2014 р. о 10:33 Bob Lee <bob@example.com> пише:',
    'st 8. 10. 2014 v 10:33 odesílatel Bob Lee <bob@example.com> napsal:',
    'Den ons 8 okt. 2014 kl 10:33 skrev Bob Lee <bob@example.com>:',
    'ke 8. lokak. 2014 klo 10.33 Bob Lee (bob@example.com) kirjoitti:',
    'Bob Lee <bob@example.com> ezt írta (időpont: 2014. okt. 8., Sze, 10:33):',
    'Στις Τετ, 8 Οκτ 2014 στις 10:33 π.μ., ο χρήστης Bob Lee <bob@example.com> έγραψε:',
    'În mie., 8 oct. 2014 la 10:33, Bob Lee <bob@example.com> a scris:',
    'Bob Lee <bob@example.com>, 8 Eki 2014 Çar, 10:33 tarihinde şunu yazdı:',
    'Vào Th 4, 8 thg 10, 2014 vào lúc 10:33 Bob Lee <bob@example.com> đã viết:',
    'Bob Lee <bob@example.com> 于2014年10月8日周三 10:33写道：',
    '2014年10月8日(水) 10:33 Bob Lee <bob@example.com>:',
    '2014년 10월 8일 (수) 오전 10:33, Bob Lee <bob@example.com>님이 작성:',
    'في ٨ أكتوبر ٢٠١٤، الساعة ١٠:٣٣ ص، كتب Bob Lee <bob@example.com>:',
    'Missatge de Bob Lee <bob@example.com> del dia dc., 8 d’oct. 2014 a les 10:33:',
    '\u202bבתאריך יום ד׳, 8 באוק׳ 2014 ב-10:33 מאת \u202aBob\u202c <\u202abob@example.com\u202c>:\u202c',
    'Pada tanggal Rab, 8 Okt 2014 pukul 10.33 Bob Lee <bob@example.com> menulis:',
  ]
  test.each(attributions)(
    'the line that introduces a quote (such as "Ann wrote:") is removed together with the quote: %s',
    (line) => {
      expect(below(`${line}|> old|> text`)).toBe(OWN)
      expect(below(`${line}||old text|without marks`)).toBe(OWN)
      expect(replyText(`${OWN}\n${line}\n\nold`)).toBe(OWN)
    },
  )

  test('an attribution line ("Ann wrote:") that is wrapped over several lines is removed from the reply text', () => {
    expect(
      below('On Mon, Aug 19, 2013 at 2:36 AM, Bob Lee via Meta <|bob@x.test> wrote:||old'),
    ).toBe(OWN)
    expect(below('Le 4 janv. 2016 19:03, "Bob Lee"|<bob@x.test>|a écrit :||> vieux')).toBe(OWN)
    expect(below('On Wed, Oct 8,|2014 at 10:33 AM Bob|<bob@x.test> wrote:|> old')).toBe(OWN)
    expect(below('On Thu, 31 Mar 2016 at 11:16 Bob||<|mailto:Bob <bob@x.test>|> wrote:||old')).toBe(
      OWN,
    )
    expect(below('On Wed, Oct 8, 2014 at 10:33=E2=80=AFAM Bob <bob@x.test> w=|rote:||> old')).toBe(
      OWN,
    )
    expect(below('Fri 10:33,|Bob Lee <bob@x.test> wrote:|> old')).toBe(OWN)
    expect(below('Fri 10:33|Bob Lee <bob@x.test> wrote:|> old')).toBe(`${OWN}\n\nFri 10:33`)
  })

  test('an attribution ("Ann wrote:") on the same line as the writer’s own text is removed from the reply text', () => {
    const line = 'Fine. On Wed, Apr 4, 2012 at 3:59 PM, bob@x.test wrote:\n> Hi'
    expect(replyText(line)).toBe('Fine.')
  })

  test('a weekday and a day of the writer stay above an attribution without a date', () => {
    const own = `${OWN}\nTuesday 14 October`
    expect(replyText(`${own}\nBob Lee <bob@example.com> wrote:\n> Hello`)).toBe(own)
  })

  test.each(['We met at 10:33 on Oct 8, 2014 in Hamburg.', 'Did we meet at 10:33 on Oct 8, 2014?'])(
    'the sentence directly above an attribution stays in the reply text: %s',
    (own) => {
      expect(replyText(`${own}\nBob <bob@x.test> wrote:\n> old`)).toBe(own)
    },
  )

  test.each([
    'Yes, room 12 at 10:30 works',
    'Call 555 1234 or come on 10.5.2026',
    'The total is 1,200.50',
    'Version 3.2',
    'On Monday at 10:30 we meet',
  ])(
    'a line with a number directly above an attribution without a date stays in the reply text: %s',
    (own) => {
      for (const text of [own, `Hello\n${own}`]) {
        expect(replyText(`${text}\nBob Lee <bob@example.com> wrote:\n> Hello`)).toBe(text)
        expect(replyText(`${text}\nBob Lee wrote:\n> Hello`)).toBe(text)
      }
    },
  )

  test.each([
    'On Wed, Oct 8, 2014 at 10:33 AM,|Bob Lee <bob@example.com> wrote:',
    'Tis 7 okt. 2025 kl. 10:33|Bob Lee <bob@example.com> skrev:',
    '7 October 2025|Bob Lee <bob@example.com> wrote:',
  ])('the line of a date directly above the name of an attribution is removed: %s', (lines) => {
    expect(below(`${lines}|> old`)).toBe(OWN)
  })

  test('an attribution with three numbers and an address, but without a verb, is removed from the reply text', () => {
    expect(below('8 okt 10:33 Bob Lee <bob@example.com>:||old')).toBe(OWN)
  })

  test('if an attribution ("Ann wrote:") follows on the same line, only the words before it belong to the reply text', () => {
    const line = 'On Wed, Apr 4, 2012 at 3:59 PM, bob@x.test wrote:|> Hi'
    expect(below(`Fine ${line}`)).toBe(`${OWN}\n\nFine`)
    for (const prefix of ['--', 'a@x.test', 'Sent from my iPhone']) {
      expect(below(`${prefix} ${line}`)).toBe(OWN)
    }
  })

  test('an attribution ("Ann wrote:") without a date is removed if a quote or the end of the text follows', () => {
    expect(below('Bob Lee wrote:|> old')).toBe(OWN)
    expect(below('bob@x.test wrote:||old')).toBe(OWN)
  })

  test.each([
    'I met her on 5 May and she wrote:\n\nit is fine.',
    'As Bob wrote on 5 May 2024, we need the following:\n\n- a\n- b',
    'On Tuesday we shipped.\nShe wrote: the docs are done.\nThanks',
    'Please call at 10:30 on 5/6/2024, or mail bob@x.test with:\n- name\n- age',
    'In 2019 the committee wrote:\n\n"We agree."',
    'Le 5 mai, Marie a écrit à tout le monde pour dire non.',
    'Am 5. Mai 2024 schrieb ich dir eine Mail.\nHast du sie?',
    'One thing: on my side, when I run it...\nOn 5 machines it fails.',
    'For 3 rooms on 12/05/2024, write to <bob@x.test>:\n- your name\n- the dates',
    'Call at 10:33, or write to <bob@x.test>:\n- your name\n- the dates',
    'Please ask 2 of us at 10:30, such as Bob (bob@x.test), about this:\n- a\n- b',
    'We all meet them over a long lunch in the canteen upstairs on 5/6/2024 at 10:30 with Bob (bob@x.test) about this:\n- a',
    'Notes --- 5/6/2024 Ann wrote to bob@x.test ---\nMore of mine.',
    'Notes --- at 10:30 on 5/6/2024 Ann wrote it ---\nMore of mine.',
    'Notes --- at 10:30 Ann wrote to bob@x.test ---\nMore of mine.',
  ])('a text without an attribution line stays complete in the reply text: %s', (text) =>
    expect(replyText(text)).toBe(text),
  )
})
