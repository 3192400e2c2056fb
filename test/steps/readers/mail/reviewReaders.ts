/**
 * Lists functions that read an outgoing mail that waits for approval. An agent wrote the mail, and a person decides
 * about it.
 */
import { SUBJECT_MAX_LENGTH } from '../../../../api/mail/outbound/sendInput.ts'
import { shortSubject } from '../../../../shared/mail/compose/approvalNotice.ts'
import { markDifferences, markMatches } from '../../../../shared/mail/review/differences.ts'
import { HTML_MAX_CHARS, htmlObstacles } from '../../../../shared/mail/review/obstacles.ts'
import { readSource, shownSources } from '../../../../shared/mail/review/pictures.ts'
import { type Reviewed, reviewOf } from '../../../../shared/mail/review/review.ts'
import { shownFields } from '../../../../shared/mail/review/shownFields.ts'
import { shownText } from '../../../../shared/mail/review/shownText.ts'
import { DRAWN_HTML_MAX_CHARS } from '../../../../sql/mail/messages/messageHtml.ts'
import { CSS, HEADER, HTML, TEXT } from '../../inputs/grammars.ts'
import type { Reader } from '../reader.ts'
import { pieces } from '../readerOf.ts'
import { mailReader, TYPED_MAX } from './mailReader.ts'

/**
 * Holds characters that hide words from a reviewer, and also the characters that the approval page shows in their
 * place.
 */
const HIDING = {
  tokens: [...TEXT.tokens, ' ', '\n', ' \n', '\t\n', '\u200b', '\u202e', '\r\n', 'a'],
}
/** Holds pieces of a mail subject that a notification mail leaves out or changes. */
const SUBJECT = { tokens: ['http://', 'www.', '.', 'a', '(', '"', ' ', '\n', '\u200b', '。', '😀'] }
/** Holds pieces of the mail header fields whose encoded words the approval page decodes. */
const FIELDS = {
  tokens: [
    ...['To: ', 'Subject: ', '\r\n', '\r\n ', ', ', '=?utf-8?Q?a?= ', '=?utf-8?B?', '?=', ' '],
    ...['\t', '<', '<a@b>', '"', '=0A', '_', ':', 'X'],
  ],
}
const letterOf = (part: Partial<Reviewed>): Reviewed => ({
  ...{ bytes: new Uint8Array(), bcc: [], refused: [], sendAt: null },
  ...{ text: '', html: null, attachments: [], ...part },
})
const filesOf = (text: string) =>
  pieces(text, 100).map((filename) => ({ filename, contentType: 'image/png', size: 1 }))

export const REVIEW_READERS: readonly Reader[] = [
  mailReader('review/shownText.ts shownText', TYPED_MAX, HIDING, (text) => shownText(text)),
  mailReader('compose/approvalNotice.ts shortSubject', SUBJECT_MAX_LENGTH, SUBJECT, (text) =>
    shortSubject(text),
  ),
  mailReader('review/pictures.ts shownSources', HTML_MAX_CHARS, HTML, (text) => shownSources(text)),
  mailReader(
    'review/pictures.ts readSource',
    DRAWN_HTML_MAX_CHARS,
    { tokens: ['cid:', 'data:image/', '&#x63;', '&amp', '%62', '%', '"', ' ', '\n', 'a'] },
    (text) => readSource(text),
  ),
  mailReader('review/shownFields.ts shownFields', TYPED_MAX, FIELDS, (text) =>
    shownFields(Buffer.from(text)),
  ),
  mailReader('review/differences.ts markDifferences', TYPED_MAX, HIDING, (text) =>
    markDifferences(text.slice(0, text.length / 2), text.slice(text.length / 2), 'new'),
  ),
  mailReader('review/differences.ts markMatches', HTML_MAX_CHARS, HTML, (text) =>
    markMatches(text, /<!--|content/g, 'found'),
  ),
  mailReader('review/obstacles.ts htmlObstacles', HTML_MAX_CHARS, HTML, (text) =>
    htmlObstacles(text, filesOf(text)),
  ),
  mailReader('review/obstacles.ts htmlObstacles: style', HTML_MAX_CHARS, CSS, (text) =>
    htmlObstacles(`<style>${text}</style>`, []),
  ),
  mailReader(
    'review/obstacles.ts htmlObstacles: pictures',
    HTML_MAX_CHARS,
    { tokens: ['<img src="cid:a">', '<img src=cid:', '&#x63;', ' src="', " src='", '"', '>'] },
    (text) =>
      htmlObstacles(
        text,
        // Some texts show a picture with the content id `a`, so the mail has a file with this content id.
        ['a', ...pieces(text, 100)].map((contentId) => ({
          ...{ contentId, contentType: 'image/png', size: 1 },
        })),
      ),
  ),
  mailReader('review/review.ts reviewOf: text', TYPED_MAX, HIDING, (text) =>
    reviewOf(letterOf({ text })),
  ),
  mailReader(
    'review/review.ts reviewOf: HTML',
    HTML_MAX_CHARS,
    HTML,
    (html) => reviewOf(letterOf({ text: html, html })),
    { budget: 400_000 },
  ),
  mailReader('review/review.ts reviewOf: fields and files', TYPED_MAX, HEADER, (text) =>
    reviewOf(
      letterOf({ bytes: Buffer.from(text), bcc: pieces(text, 20), attachments: filesOf(text) }),
    ),
  ),
]
