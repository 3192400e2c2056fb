/**
 * Tests the header blocks and the separators that mail clients write above a quoted message. The mail texts around
 * these lines were written for these tests.
 */
import { describe, expect, test } from 'bun:test'
import { replyText } from '../../../../shared/mail/replyText/replyText.ts'

const OWN = 'Yes, Tuesday works.\nSee you there!'

/**
 * Returns the reply text of a mail in which the text of `template` is below the writer’s own text. In `template`, each
 * `|` becomes a line end.
 */
const below = (template: string) => replyText(`${OWN}\n\n${template.replaceAll('|', '\n')}`)

describe('the reply text ends before a header block or a separator', () => {
  test.each([
    'From: Bob Lee|Sent: Wednesday, October 8, 2014 10:33 AM|To: Ann|Subject: RE: x||old',
    '________________________________|From: Bob <bob@x.test>|Sent: Monday||old',
    ' ------------------------------||*From:* Bob|*Sent:* 2016-01-27|*To:* a@x.test|*Subject:* x||old',
    'Von: Bob [mailto:bob@x.test]|Gesendet: Mittwoch, 8. Oktober 2014 10:33|An: Ann|Betreff: x||alt',
    'De : Bob|Envoyé : mercredi 8 octobre 2014 10:33|À : Ann|Objet : RE: x||vieux',
    'Da: Bob <bob@x.test>|Inviato: lunedì 1 giugno 2026|A: me|Oggetto: Re: x||vecchio',
    'Van: Bob|Verzonden: woensdag 8 oktober 2014|Aan: Ann|Onderwerp: RE: x||oud',
    'От: Bob|Отправлено: 8 октября 2014 г. 10:33|Кому: Ann|Тема: RE: x||старое',
    'Från: Bob|Skickat: den 8 oktober 2014|Till: Ann|Ämne: SV: x||gammalt',
    '发件人: Bob|发送时间: 2014年10月8日|收件人: Ann|主题: RE: x||旧',
    '差出人: Bob|送信日時: 2014年10月8日|宛先: Ann|件名: RE: x||古い',
    '差出人: Bob <bob@x.test>|日付: 2014年10月8日|宛先: Ann|件名: RE: x||古い',
    '*Gönderen:* Bob|*Gönderme Tarihi:* 8 Ekim 2014 10:33|*Kime:* Ann|*Konu:* x||eski',
    'من: Bob|تم الإرسال: 8 أكتوبر 2014|إلى: Ann|الموضوع: x||قديم',
    'Od: Bob|Poslato: 8. oktobar 2014.|Za: Ann|Naslov: x||staro',
    'Od: Bob|Poslano: 8. oktober 2014|Za: Ann|Zadeva: x||staro',
    'No: Bob|Nosūtīts: 2014. gada 8. oktobris|Kam: Ann|Tēma: x||vecs',
    'Nuo: Bob|Išsiųsta: 2014 m. spalio 8 d.|Kam: Ann|Tema: x||senas',
    'De: Bob|Enviado o: 8 de outubro de 2014|Para: Ann|Asunto: x||vello',
    'Nork: Bob|Bidalia: 2014(e)ko urriak 8|Nori: Ann|Gaia: x||zaharra',
    'प्रेषक: Bob|भेजा गया: 8 अक्टूबर 2014|प्रति: Ann|विषय: x||पुराना',
    'Daripada: Bob|Dihantar: 8 Oktober 2014|Kepada: Ann|Subjek: x||lama',
    'Date: Wed, 8 Oct 2014 10:33:12 +0200|From: bob@x.test|To: ann@x.test|Subject: x||old',
    'From: Bob <bob@x.test> Sent: Monday, June 1 To: Ann Subject: x||old',
    '-----Original Message-----||old',
    '-------- Ursprüngliche Nachricht --------|alt',
    '----- Mail original -----|vieux',
    '------------------ 原始邮件 ------------------|旧',
    'Original Message|From: Bob|Sent: Monday|To: Ann|Subject: x||old',
    '##- Please type your reply above this line -##||old',
    '— Reply above this line —||old',
    '##- Bitte geben Sie Ihre Antwort oberhalb dieser Zeile ein. -##||alt',
    '##- Veuillez saisir votre réponse au-dessus de cette ligne -##||vieux',
    '##- Escriba su respuesta por encima de esta línea -##||viejo',
    '-- por favor responda acima desta linha --||velho',
    '=== Scrivi la risposta sopra questa riga ===||vecchio',
    '--- Typ uw antwoord boven deze regel ---||oud',
    '--- Odpowiedz powyżej tej linii ---||stare',
    '--- Пожалуйста, пишите ответ выше этой линии ---||старое',
    '--- Svar ovanför den här linjen ---||gammalt',
    '##- この線より上に返信してください -##||古い',
    '##- 请在此行上方回复 -##||旧',
    '>>> Bob Lee <bob@x.test> 10/8/2014 10:33 AM >>>|old',
  ])('the header or marker of a quote is cut together with the text below: %s', (block) =>
    expect(below(block)).toBe(OWN),
  )

  test.each([
    'It should read:\nFrom: The Daily Digest Team\n\nDoes that work?',
    'Hoi,\nVan: alles wat we vandaag besproken hebben\nGroeten.',
    'From: Paris\nTo: London\nDate: 5 May 2024 10:00\n\nPlease book this.',
    'Please write a mail:\n\nFrom: sales@x.test\nTo: bob@y.test\nSubject: Hello\n\nWe are open.',
    'To: do list\n- milk\n- eggs',
    'Done.\n\n-- if you forward this message then please keep the list in it --\n\nThanks.',
    'Title\n=====\n\nText.\n\nOther\n-----\n\nMore text that goes on.',
    'Name | Age\n-----|-----\nBob | 5',
    'The list:\n\n--- Line items above 100 EUR ---\n\nPump, valve.',
    'Frage 1\n\n-- Antwort siehe oben --\n\nFrage 2: am Montag.',
    'I wrote the reply above this line in the draft.\n\nPlease check it.',
  ])(
    'a text that only resembles a quote header or a separator stays complete in the reply text: %s',
    (text) => expect(replyText(text)).toBe(text),
  )
})

describe('the reply text of a whole mail contains only what its writer wrote', () => {
  const tail = '\nFrom: Ann <ann@x.test>\nDate: Mon, Jun 1, 2026\nSubject: Report\n\nBody of it.'
  test.each([
    '---------- Forwarded message ---------',
    'Begin forwarded message:\n',
    '-------- Weitergeleitete Nachricht --------',
    'Anfang der weitergeleiteten Nachricht:\n',
    '---------- Message transféré ---------',
    'Début du message réexpédié :\n',
    '---------- Mensaje reenviado ---------',
    '-------- Messaggio Inoltrato --------',
    '---------- Doorgestuurd bericht ---------',
    'Początek przekazywanej wiadomości:\n',
    '-------- Пересылаемое сообщение --------',
    '---------- Vidarebefordrat meddelande ---------',
    '-------- Továbbított üzenet --------',
    '---------- İletilen mesaj ---------',
    '---------- 转发的邮件 ---------',
    '---------- 転送メッセージ ---------',
    '---------- 전달된 메시지 ---------',
  ])('a forwarded mail below this line stays in the reply text: %s', (mark) => {
    expect(replyText(`FYI\n\n${mark}${tail}`)).toBe(`FYI\n\n${mark}${tail}`)
    expect(replyText(`${mark}${tail}`)).toBe(`${mark}${tail}`)
  })

  test('a forwarded mail that the writer pasted stays in the reply text', () => {
    const text = 'Fwd: Invoice\nFrom: billing@x.test\nDate: Mon, 1 Jun 2026\n\nSee below.'
    expect(replyText(text)).toBe(text)
  })

  test('the reply text ends before a quoted history that contains a forwarded mail', () => {
    expect(
      below('On 1 Jun 2026 at 9:00, Bob <b@x.test> wrote:|> -- Forwarded message --|> x'),
    ).toBe(OWN)
  })

  test('a bounce stays complete in the reply text, but a quoted bounce is removed', () => {
    const bounce =
      'Delivery has failed to these recipients:\n\na@x.test\nFrom: B <b@x.test>\nTo: a\nDate: 1'
    expect(replyText(bounce)).toBe(bounce)
    expect(below('On 1 Jun 2026 at 9:00 <d@x.test> wrote:|Final-Recipient: rfc822; a@x.test')).toBe(
      OWN,
    )
  })

  test('a sentence about recipients does not count as a bounce, whereas a report about undelivered recipients does', () => {
    const own = 'The following recipients get the invoice: Ann and Bob.'
    expect(replyText(`${own}\n\nOn 1 Jun 2026 at 9:00, Bob <b@x.test> wrote:\n> Who?`)).toBe(own)
    for (const start of [
      'The following recipient(s) cannot be reached:',
      'The following recipient(s) could not be reached:',
      'The following recipients could not be reached:',
    ]) {
      const report = `${start}\n\na@x.test\n\nOn 1 Jun 2026 at 9:00, Bob <b@x.test> wrote:\n> Who?`
      expect(replyText(report)).toBe(report)
    }
  })

  test.each([
    '--- Email settings ---',
    '--- Mailing address ---',
    '--- Abbreviations ---',
    '--- Прайс-лист ---',
    '===== E-mail =====',
    '--- Forwarded messages of the past year are kept here ---',
  ])('a heading that the writer wrote does not end the reply text: %s', (heading) => {
    const own = `Here it is.\n\n${heading}\n\nHost mx.test, port 25.`
    expect(replyText(own)).toBe(own)
    expect(replyText(`${own}\n\n-----Original Message-----\nold`)).toBe(own)
  })

  test('a line such as "--- Reply message ---" ends the reply text if headers or quote marks follow', () => {
    expect(below('----- Reply message -----|From: Bob|To: Ann|old')).toBe(OWN)
    expect(below('----- Message from bob@x.test -----||> old')).toBe(OWN)
    expect(below('----- Pesan Asli -----||lama')).toBe(OWN)
  })

  test('a bounce’s status has three numbers, so a version number in the writer’s text does not count as a bounce', () => {
    const report = 'Status: 5.1.1 (bad destination mailbox address)\n\n> old'
    expect(replyText(report)).toBe(report)
    const own = 'Status: 5.2 is live since noon.\n\nAll tests pass.'
    expect(replyText(`${own}\n\nOn 1 Jun 2026 at 9:00, Bob <b@x.test> wrote:\n> Done?`)).toBe(own)
  })

  test.each([
    '> only\n> quotes',
    'On Mon, 1 Jun 2026 at 9:00, Bob <b@x.test> wrote:\n> only',
    '-- \nBob\nbob@x.test',
    'Sent from my iPhone',
    '-----Original Message-----\nHello',
    'From: B <b@x.test>\nSent: Monday\nTo: A\nSubject: x\n\nold',
  ])('if a mail has any text, its reply text is never empty: %s', (text) =>
    expect(replyText(text)).toBe(text),
  )

  test('the reply text is empty if the mail has only white space', () => {
    expect(replyText('')).toBe('')
    expect(replyText(' \r\n\t\n')).toBe('')
  })

  test('the reply text is found in mails with CRLF or CR as line ends', () => {
    expect(replyText('Yes.\r\n\r\nOn 1 Jun 2026 at 9:00, B <b@x.test> wrote:\r\n> a\r\n')).toBe(
      'Yes.',
    )
    expect(replyText('one\rtwo')).toBe('one\ntwo')
  })
})
