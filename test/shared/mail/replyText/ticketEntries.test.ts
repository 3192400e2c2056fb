import { describe, expect, test } from 'bun:test'
import { replyText } from '../../../../shared/mail/replyText/replyText.ts'

const OWN = 'Still broken after the update, I am afraid.'

describe('the history of a ticket below a reply is removed from the reply text', () => {
  test.each([
    [
      'entries with a time and a name',
      '2025-01-22 14:03 (UTC) Lumen Support:\nPlease update.\n\n2025-01-20 09:30 (UTC) Ann Lee:\nIt fails.',
    ],
    [
      'an entry with an address',
      '03/11/2025 7:32 PM - Wheel Works <hello@wheel.test>\n\nHi Ann, your bicycle is ready.',
    ],
    [
      'entries in the German form of a date',
      '22.01.2025 14:03 Lumen Hilfe:\nBitte neu starten.\n\n20.01.2025 09:30 Ann Lee:\nEs geht nicht.',
    ],
  ])('the reply text omits a ticket history that consists of %s', (_, history) => {
    expect(replyText(`${OWN}\n\n${history}`)).toBe(OWN)
  })

  test.each([
    ['one time with a name', '2025-01-22 14:03 Lumen Support:\nthat was the last restart.'],
    ['the log of a machine', '2025-01-22 14:03 ERROR disk full\n2025-01-22 14:04 ERROR disk full'],
    ['appointments in a row', '2025-01-22 14:03 Ann:\n2025-01-23 15:00 Bob:\nWhich of them?'],
    [
      'text without anything above',
      '2025-01-22 14:03 Ann Lee:\nHi.\n\n2025-01-23 15:00 Bob Ray:\nHo.',
    ],
  ])('a text does not count as a ticket’s history below a reply if it is %s', (name, text) => {
    const mail = name.startsWith('text') ? text : `${OWN}\n\n${text}`
    expect(replyText(mail)).toBe(mail)
  })
})
