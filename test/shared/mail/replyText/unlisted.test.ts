/**
 * Tests languages and mail programs that are missing in the service's lists. The service must therefore recognise the
 * kind of a line by its date, its address and its position.
 */
import { describe, expect, test } from 'bun:test'
import { replyText, replyTextFromHtml } from '../../../../shared/mail/replyText/replyText.ts'
import { cpuMsOf } from '../../../support/process/cpuTime.ts'

const OWN = 'Yes, Tuesday works.\nSee you there!'

/**
 * Returns the reply text of a mail in which the text of `template` is below the writer’s own text. In `template`, each
 * `|` becomes a line end.
 */
const below = (template: string) => replyText(`${OWN}\n\n${template.replaceAll('|', '\n')}`)

describe('the service removes an earlier mail below the writer’s own text, even if its language or mail program is unknown', () => {
  test.each([
    'ti 3. maalisk. 2026 klo 9.14 Mikko Salmi raapusti:|> Moi',
    'ti 3. maalisk. 2026 klo 9.14 Mikko Salmi <m@x.test> raapusti:||Moi',
    'На вт, 3 мар 2026 во 09:14 Ана <a@x.test> напиша:||> Здраво',
    'Mnamo Jum, 3 Mac 2026, 09:14 Asha <a@x.test> aliandika:||Habari',
    'মঙ্গল, ৩ মার্চ, ২০২৬ তারিখে ৯:১৪ AM টায় Ana <a@x.test> লিখেছেন:||> hi',
    '2026 թ. մրտ 3, երք, 09:14-ին Ana <a@x.test>-ը գրել է․||> hi',
    'სამ, 3 მარ. 2026, 09:14 — Ana (<a@x.test>) დაწერა:||hi',
    'Ana <a@x.test> igorleak hau idatzi du (2026 mar. 3, ar. (09:14)):||hi',
    'Od: Ana <a@x.test>|Испратено: вторник, 3 март 2026 09:14|До: me@x.test|Предмет: Re||old',
    'გამომგზავნი: Ana <a@x.test>|გაგზავნილია: 3 მარტი 2026 09:14|მიმღები: me@x.test|თემა: Re||old',
    'Kimdən: Ana <a@x.test>|Göndərilib: 3 mart 2026 09:14|Kimə: me@x.test|Mövzu: Re||old',
    'On Tue, Mar 3, 2026 at 9:14 AM, Laura <l@x.test> wrote: Hello, which door?|Laura',
    'Sent from Nine',
    'Envoyé de mon Pixel',
    'Von Freenet Mail gesendet',
    'Get BlueMail for Android',
    'Yahoo Mail on Android',
    "Envoyé depuis l'application Mail Orange",
    '从网易邮箱大师发来的',
    '-- Owen Hale',
    '*--*|*Owen Hale*',
    'Virenfrei. www.avast.com',
    'This email was Virus checked by AVG|http://www.avg.com',
    'Bitte denken Sie an die Umwelt, bevor Sie diese E-Mail ausdrucken.',
    "Pensez à l'environnement avant d'imprimer ce message.",
    'Detta meddelande är konfidentiellt och avsett endast för adressaten.',
    '********************|This email may contain privileged material meant for the addressee.|********************',
  ])('the reply text omits the signature or disclaimer %s', (template) =>
    expect(below(template)).toBe(OWN),
  )

  test.each([
    'Call me on 3 March 2026 at 09:14, my number is:|030 5550 1234',
    'The train on 3 March 2026 at 09:14 stops here:|Leeds|York',
    'Contact: Pia Lund <pia@x.test>|Room: 4|Floor: 2',
    'Sent from Leeds to York, the parcel took a week.',
    'Sent with the invoice',
    'It fails on Android',
    '-- two of them round',
    'Our printer harms the environment. We bought a new one, and it costs less than the old one did. Which paper do you suggest for posters, and how much of it do you have? '.repeat(
      3,
    ),
    'We use Avast. Is that enough against a virus?|Please tell me more about it.|Do you sell it?|How much?|Can you install it here?',
  ])('the reply text keeps these lines below the writer’s text: %s', (template) =>
    expect(below(template)).toBe(`${OWN}\n\n${template.replaceAll('|', '\n')}`.trim()),
  )
})

test('quoted history on the same line as the new text is removed from the reply text', () => {
  const own = 'Yes, Tuesday works.'
  for (const joined of [
    'On Tue, Mar 3, 2026 at 9:14 AM, Laura <l@x.test> wrote: Hello, which door?',
    'Am Di., 3. März 2026 um 09:14 Uhr schrieb Laura <l@x.test>: Hallo, welche Tür?',
    'From: Laura <l@x.test> Sent: Tuesday, March 3, 2026 9:14 AM To: me Subject: RE: door Hello',
  ])
    expect(replyText(`${own} ${joined}`)).toBe(own)
})

test('a quote that the writer discusses stays in the reply text, even if a quoted mail follows below it', () => {
  const cited = 'The lease says:\n\n> The tenant pays by the third day.\n\nSo no fee is due.'
  expect(replyText(`${cited}\n\nOn 3 Mar 2026, Laura <l@x.test> wrote:\n> Pay!`)).toBe(cited)
  const html = '<p>The lease says:</p><blockquote>Pay by day three.</blockquote><p>No fee.</p>'
  expect(replyTextFromHtml(html)).toBe('The lease says:\n\n> Pay by day three.\n\nNo fee.')
})

describe('finding the reply text of hostile input without known phrases takes limited CPU time', () => {
  const MB = 1_000_000
  const inputs: [string, string][] = [
    ['brackets', '['.repeat(MB)],
    ['lines of brackets', `${'['.repeat(390)}9:14\n`.repeat(2500)],
    ['addresses', '<a@b> 9:14 '.repeat(MB / 11)],
    ['addresses with dates', 'On 3/3/2026 9:14 A <a@b.c> x: '.repeat(MB / 30)],
    ['listed labels', 'From: a Date: b To: c '.repeat(MB / 22)],
    ['unlisted labels', 'x: A <a@b.c>\n'.repeat(MB / 13)],
    ['introduced quotes', 'a:\n> b\n'.repeat(MB / 8)],
    ['capitals', `${'Aa '.repeat(130)}\n\n`.repeat(2500)],
  ]
  test.each(inputs)(
    'the reply text of a megabyte of %s is found within 2 s of CPU time',
    (_name, text) => {
      expect(cpuMsOf(() => replyText(text))).toBeLessThan(2000)
    },
  )
})
