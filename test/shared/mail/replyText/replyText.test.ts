import { describe, expect, test } from 'bun:test'
import { replyText, replyTextFromHtml } from '../../../../shared/mail/replyText/replyText.ts'
import { cpuMsOf } from '../../../support/process/cpuTime.ts'

const OWN = 'Yes, Tuesday works.\nSee you there!'

/** Returns the reply text of a mail with the writer's text above `template`, in which `|` marks a line end. */
const below = (template: string) => replyText(`${OWN}\n\n${template.replaceAll('|', '\n')}`)

describe('the service separates answers between quoted lines from quoted history', () => {
  test('answers between quotes stay in the reply text, together with the quotes', () => {
    const text = 'Hi\n\n> Can you come?\nYes.\n> And Bob?\nNo.\n\nBye'
    expect(replyText(text)).toBe(text)
    const answers = 'On 1 Jun 2026 at 9:00, B <b@x.test> wrote:\n> one?\n\nyes\n\n> two?\n\nno'
    expect(replyText(`${answers}\n\n> three\n-- \nAnn`)).toBe(answers)
  })

  test('a quote above the writer’s answer is removed only if an attribution line ("Ann wrote:") introduces the quote', () => {
    expect(replyText('On 1 Jun 2026 at 9:00, B <b@x.test> wrote:\n> one?\n\nyes')).toBe('yes')
    expect(replyText('> one?\n\nyes')).toBe('> one?\n\nyes')
    expect(below('On 1 Jun 2026 at 9:00, B <b@x.test> wrote:|> one?||Bye')).toBe(`${OWN}\n\n\nBye`)
  })

  test('a quote at the end of the mail is removed from the reply text', () => {
    expect(below('> old|>|> text')).toBe(OWN)
    expect(replyText(`${OWN}\n\n2013/7/20 Bob <bob@x.test>\n\n| old\n|\n| text`)).toBe(OWN)
  })

  test('if a quoted line is wrapped, its second half has no quote mark, but does not count as the writer’s answer', () => {
    const wrapped =
      '> Lorem ipsum dolor sit amet, consectetur adipiscing elit, nulla|pharetra odio?|> x'
    expect(below(`On 1 Jun 2026 at 9:00, B <b@x.test> wrote:|${wrapped}`)).toBe(OWN)
  })

  test('an example after a colon has at most four lines with the mark `>`, and a longer block is quoted history', () => {
    const lines = (count: number) => Array.from({ length: count }, (_, n) => `> command ${n}`)
    const example = (count: number) => ['Run this:', ...lines(count)].join('\n')
    expect(replyText(example(4))).toBe(example(4))
    expect(replyText(example(5))).toBe('Run this:')
  })

  test.each([
    'Run this:\n\n> npm install\n> npm test',
    '- one\n- two\n\n* three\n+ four',
    'x = 5 > 3\ny < 4\n>_<',
    'Visit us now...\n>>> >>>  http://x.test <<<\nand click',
    'Try\n\n```\n-- comment\nOn 1 Jun 2026 at 9:00, Bob <b@x.test> wrote:\n> x\n```\n\nDoes it work?',
    '| a | b |\n| - | - |\n| 1 | 2 |',
  ])('a text without a quote stays complete in the reply text: %s', (text) =>
    expect(replyText(text)).toBe(text),
  )
})

describe('the reply text of an HTML mail contains no quote or signature element', () => {
  const cases: [string, string, string][] = [
    [
      'of Gmail ends before the quote',
      '<div>Yes.</div><div class="gmail_quote"><div class="gmail_attr">Xyz napsauza:</div><blockquote class="gmail_quote">old</blockquote></div>',
      'Yes.',
    ],
    [
      'of Outlook on the web ends before the header block',
      '<div>Yes.</div><div id="appendonsend"></div><hr><div id="divRplyFwdMsg"><b>From:</b> B</div><div>old</div>',
      'Yes.',
    ],
    [
      'of Outlook on the desktop ends before the header block',
      '<p>Yes.</p><div style="border-top:solid #E1E1E1 1pt"><p><b>Von:</b> B &lt;b@x.test&gt;<br><b>Gesendet:</b> Mo<br><b>An:</b> A<br><b>Betreff:</b> x</p></div><p>alt</p>',
      'Yes.',
    ],
    [
      'of Outlook on a telephone ends before the signature',
      '<div>Yes.</div><div id="ms-outlook-mobile-signature">Get <a href="https://aka.ms/x">Outlook for iOS</a></div><div id="mail-editor-reference-message-container">old</div>',
      'Yes.',
    ],
    [
      'of Apple Mail ends before the quote',
      'Yes.<div><blockquote type="cite"><div>On 1 Jun 2026, at 09:00, B wrote:</div>old</blockquote></div>',
      'Yes.',
    ],
    [
      'of Thunderbird ends before the quote',
      '<p>Yes.</p><div class="moz-cite-prefix">Am 1.6. schrub B:</div><blockquote type="cite">old</blockquote><pre class="moz-signature">-- \nAnn</pre>',
      'Yes.',
    ],
    [
      'of Yahoo ends before the quote',
      '<div>Yes.</div><div class="ydp2yahoo_quoted"><div>On Mon, B wrote:</div><div>old</div></div>',
      'Yes.',
    ],
    [
      'of GMX ends before the quote',
      '<div>Yes.</div><div name="quote"><b>Gesendet:</b> Mo<br>alt</div>',
      'Yes.',
    ],
    [
      'omits a quote above the reply',
      '<blockquote type="cite">old</blockquote><div>Yes.</div>',
      'Yes.',
    ],
    [
      'keeps quotes between inline answers',
      '<div class="gmail_quote"><blockquote class="gmail_quote">q1</blockquote><div>a1</div><blockquote class="gmail_quote">q2</blockquote><div>a2</div></div>',
      '> q1\n\na1\n\n> q2\n\na2',
    ],
    [
      'keeps an indented paragraph',
      '<div>Look:</div><blockquote style="margin:0 0 0 40px;border:none">mine</blockquote>',
      'Look:\nmine',
    ],
    [
      'keeps a forward',
      '<div>FYI</div><div class="gmail_quote"><div class="gmail_attr">---------- Forwarded message ---------<br>From: A</div>body</div>',
      'FYI\n---------- Forwarded message ---------\nFrom: A\nbody',
    ],
    [
      'omits a signature',
      '<div>Yes.</div><span class="gmail_signature_prefix">-- </span><br><div class="gmail_signature">Ann</div>',
      'Yes.',
    ],
    [
      'keeps a signature without other text',
      '<div class="gmail_signature">All I wrote</div>',
      'All I wrote',
    ],
    ['keeps a quote without other text', '<blockquote type="cite">old</blockquote>', '> old'],
    [
      'keeps the links of a notice',
      '<p>Code 123456</p><a href="https://x.test/v?t=1">Verify</a>',
      'Code 123456\n\nVerify [https://x.test/v?t=1]',
    ],
    ['is empty for an empty mail', '', ''],
  ]
  test.each(cases)('the reply text of an HTML mail %s', (_name, html, want) =>
    expect(replyTextFromHtml(html)).toBe(want),
  )
})

describe('finding the reply text of hostile input takes limited CPU time', () => {
  const MB = 1_000_000
  const inputs: [string, string][] = [
    ['>', '>'.repeat(MB)],
    ['> lines', '>\n'.repeat(MB / 2)],
    ['blank lines', `a${'\n'.repeat(MB)}b`],
    ['carriage returns', '\r'.repeat(MB)],
    ['spaces', `a${' '.repeat(MB)}b`],
    ['dashes', `x\n\n${'-'.repeat(MB)}`],
    ['underscores', '_'.repeat(MB)],
    ['signature delimiters', '--\n'.repeat(MB / 3)],
    ['"On" lines', 'On Mon, 1 Jun 2026 at 9:00 AM Bob <bob@example.com>\n'.repeat(5000)],
    ['"On … wrote:" lines', 'On Mon, 1 Jun 2026 at 9:00 AM Bob wrote:\n> a\n'.repeat(5000)],
    ['lines with a colon', 'a1:\n'.repeat(MB / 4)],
    ['header lines', 'To: a\nFrom: b\n'.repeat(MB / 14)],
    ['nested quotes', Array.from({ length: 2000 }, (_, i) => `${'>'.repeat(i)} x`).join('\n')],
    ['code fences', '```\n'.repeat(MB / 4)],
    ['zero-width spaces', '\u200b\n'.repeat(MB / 2)],
    ['alternating text and quotes', 'a\n> b\n'.repeat(MB / 6)],
  ]
  // In a measurement, each input took less than 0.2 s of CPU time. The test allows 2 s, because the machine may be
  // busy.
  test.each(inputs)(
    'the reply text of a megabyte of %s is found within 2 s of CPU time',
    (_name, text) => {
      expect(cpuMsOf(() => replyText(text))).toBeLessThan(2000)
    },
  )
})
