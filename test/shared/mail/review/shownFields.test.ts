/** Tests that the header fields on the approval page show the recipients that get the mail. */
import { describe, expect, test } from 'bun:test'
import { composeMail } from '../../../../shared/mail/compose/composeMail.ts'
import { reviewOf } from '../../../../shared/mail/review/review.ts'

const encoded = (text: string) => `=?UTF-8?B?${Buffer.from(text).toString('base64')}?=`

/** Returns the lines of the header fields that the approval page shows for a mail. */
function shown(bytes: Uint8Array): string[] {
  const letter = { bcc: [], refused: [], sendAt: null, text: 'Hello', html: null, attachments: [] }
  const [fields] = reviewOf({ ...letter, bytes }).pages[0]!
  return fields!.pieces
    .map(({ text }) => text)
    .join('')
    .split('\n')
}
const line = (field: string) => shown(Buffer.from(`${field}\r\n\r\nHello`))

async function composed(given: object): Promise<string[]> {
  const content = {
    ...{ messageId: '<a@b.example>', date: new Date(0), fromName: 'Desk', to: ['ada@a.example'] },
    ...{ fromAddress: 'desk@b.example', cc: [], names: {}, subject: 'Tide', text: 'Hello' },
    ...{ html: null, inReplyTo: [], references: [], attachments: [], unsubscribe: null },
    headers: null,
  }
  return shown(await composeMail({ ...content, ...given }))
}

describe('the approval page shows an address exactly as the header field contains it, without decoding a part of it', () => {
  const local = encoded('boss@corp.example>\nX-Ref: <7')

  test.each(['From', 'To', 'Cc'])('no encoded word of an address in %s is decoded', (name) => {
    for (const field of [
      `${name}: ${local}@evil.example`,
      `${name}: <${local}@evil.example>`,
      `${name}: Ada <${local}@evil.example>`,
      `${name}: "${local}"@evil.example, ada@a.example`,
    ])
      expect(line(field)).toEqual([field])
  })

  test('the approval page decodes no encoded word inside header fields such as Message-ID and References', () => {
    for (const name of ['X-A', 'Message-ID', 'In-Reply-To', 'References', 'List-Unsubscribe']) {
      const field = `${name}: <${encoded('1\nTo: boss@corp.example')}@evil.example>`
      expect(line(field)).toEqual([field])
    }
  })

  test('a decoded display name with delimiters of addresses is shown in quotes', async () => {
    const name = 'Zoë <boss@corp.example>, "x'
    const to = await composed({ names: { 'ada@a.example': name } })
    expect(to).toContain('To: "Zoë <boss@corp.example>, \\"x" <ada@a.example>')
  })
})

describe('the approval page shows a line break inside a header field as the code number of the character', () => {
  test('a line break that an encoded word contains does not look like a second header field on the approval page', () => {
    expect(line(`Subject: ${encoded('Lunch\r\nTo: boss@corp.example')}`)).toEqual([
      'Subject: Lunch⟨U+000D⟩⟨U+000A⟩To: boss@corp.example',
    ])
    expect(line(`To: ${encoded('A\nCc: boss')} <a@a.example>`)).toEqual([
      'To: "A⟨U+000A⟩Cc: boss" <a@a.example>',
    ])
  })

  test('a single LF or CR in a header field does not look like a second header field on the approval page', () => {
    expect(line('X-A: 1\nTo: boss@corp.example\rCc: b')).toEqual([
      'X-A: 1⟨U+000A⟩To: boss@corp.example⟨U+000D⟩Cc: b',
    ])
  })
})

test('the approval page shows names and subjects of other scripts in their letters', async () => {
  const names = {
    'ada@a.example': 'Žofie Nováková von und zu der langen Brücke am großen Fluss',
    'bo@xn--bcher-kva.example': '日本 太郎',
    'desk@b.example': 'Zoë',
  }
  const fields = await composed({
    ...{ to: ['ada@a.example', 'bo@xn--bcher-kva.example'], cc: ['plain@a.example'], names },
    ...{ fromName: 'Büro', subject: `Übergabe ${'äöü '.repeat(40)}ende` },
  })
  expect(fields).toContain('From: Büro <desk@b.example>')
  expect(fields).toContain(
    `To: ${names['ada@a.example']} <ada@a.example>, 日本 太郎 <bo@xn--bcher-kva.example>`,
  )
  expect(fields).toContain('Cc: plain@a.example')
  expect(fields).toContain(`Subject: Übergabe ${'äöü '.repeat(40)}ende`)
})
