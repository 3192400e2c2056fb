/**
 * Tests signature lines in the forms that mail clients write. The mail texts around these signature lines were written
 * for these tests.
 */
import { describe, expect, test } from 'bun:test'
import { replyText } from '../../../../shared/mail/replyText/replyText.ts'

const OWN = 'Yes, Tuesday works.\nSee you there!'

/**
 * Returns the reply text of a mail in which the text of `template` is below the writer’s own text. In `template`, each
 * `|` becomes a line end.
 */
const below = (template: string) => replyText(`${OWN}\n\n${template.replaceAll('|', '\n')}`)

describe('a signature below the writer’s own text is removed from the reply text', () => {
  test.each(['-- ', '--', '__', '—'])(
    'a signature after the delimiter %p is removed from the reply text',
    (mark) => {
      expect(replyText(`${OWN}\n${mark}\nBob\n+1 555 0123`)).toBe(OWN)
    },
  )

  test('a separator line with a signature is removed, but a separator line before a full sentence stays', () => {
    expect(below('—————|Ann Lee|ann@x.test')).toBe(OWN)
    expect(below('—————|Ann Lee|Head of Harbour Works')).toBe(OWN)
    const five = '—————\nAnn Lee\nHead of the Harbour Works'
    expect(below(five)).toBe(`${OWN}\n\n${five}`)
    expect(below('_______________________________________________|list@x.test')).toBe(OWN)
    const sections =
      'First.\n\n---\n\nSecond part, a full sentence that says a thing or two about it all.'
    expect(replyText(sections)).toBe(sections)
  })

  test('the lines below a sign-off are removed if they repeat the first name of the sign-off', () => {
    const text = 'See page 4.\n\nKind regards,\nAnn'
    expect(replyText(`${text}\n\nAnn Lee\nPartner, Quay Law LLP\n+44 20 7946 0000`)).toBe(text)
  })

  test.each([
    ['a name without a line below', 'See page 4.\n\nRegards,\nAnn\n\nAnn Lee'],
    ['a sentence about the writer', 'Done.\n\nThanks,\nAnn\n\nAnn Lee will call you.\nShe is in.'],
    ['a name without a sign-off', 'Who comes?\n\nAnn\n\nAnn Lee\nBob Ray\n\nThat is all.'],
  ])('the text stays complete in the reply text if the text has %s', (_, text) => {
    expect(replyText(text)).toBe(text)
  })

  test('a sign-off such as "Best regards" without the delimiter "-- " above stays in the reply text', () => {
    const text = 'See below.\n\nBest regards,\nBob Lee\nCEO'
    expect(replyText(text)).toBe(text)
  })

  test.each([
    'Sent from my iPhone',
    'Sent from my Samsung Galaxy smartphone.',
    'Sent from Yahoo Mail on Android',
    'Sent from Mail for Windows 10',
    'Get Outlook for iOS<https://aka.ms/x>',
    'Get [Outlook for Android](https://aka.ms/x)',
    'Sent from my phone, please excuse brevity',
    'Von meinem iPhone gesendet',
    'Gesendet von Outlook für iOS',
    'Diese Nachricht wurde von meinem Android-Gerät mit K-9 Mail gesendet.',
    'Envoyé de mon iPhone',
    'Provenance : Courrier pour Windows 10',
    'Enviado desde mi iPhone',
    'Enviado do meu iPhone',
    'Inviato da iPhone',
    'Verstuurd vanaf mijn iPhone',
    'Wysłane z iPhone’a',
    'Отправлено с iPhone',
    'Надіслано з iPhone',
    'Odesláno z iPhonu',
    'Skickat från min iPhone',
    'Sendt fra min iPhone',
    'Lähetetty iPhonesta',
    'Elküldve az iPhone-omról',
    'Στάλθηκε από το iPhone μου',
    'Trimis de pe iPhone-ul meu',
    'iPhone’umdan gönderildi',
    'Đã gửi từ iPhone của tôi',
    '发自我的iPhone',
    'iPhoneから送信',
    '나의 iPhone에서 보냄',
    'أُرسلت من الـ iPhone',
    'Enviat des del meu iPhone',
    'נשלח מה-iPhone שלי',
  ])('the device line is cut from the reply text: %s', (line) => {
    expect(below(line)).toBe(OWN)
    expect(replyText(`${OWN}\n${line}\n\nOn 1 Jun 2026 at 9:00, B <b@x.test> wrote:\n> a`)).toBe(
      OWN,
    )
  })

  test.each([
    'The note was sent from my iPhone app to all users.',
    'Sent from my desk, is much easier then my mobile phone.',
    'Sent by mail to your office on Monday.',
    'Get the app from the store and install it on your phone.',
    'Von meinem Standpunkt aus ist das gut.\nGruß',
    'Hi,\nUnsubscribe me please.',
    'Hi,\nThis email is about the confidential deal; call me.',
  ])('a sentence that resembles a device line or a footer stays in the reply text: %s', (text) =>
    expect(replyText(`Hi.\n\n${text}`)).toBe(`Hi.\n\n${text}`),
  )

  test('legal notices and mailing list footers are removed from the reply text', () => {
    expect(
      below('This e-mail and any files are confidential and intended solely for the addressee.'),
    ).toBe(OWN)
    expect(below('Diese E-Mail enthält vertrauliche Informationen. Confidential.|Danke')).toBe(OWN)
    expect(below('You received this message because you are subscribed to a group.')).toBe(OWN)
  })
})
