/** Readers of the text and the HTML of a mail. */
import { codeParts } from '../../shared/mail/codeParts.ts'
import * as phrases from '../../shared/mail/codePhrases.ts'
import { candidatesOf, plainForm } from '../../shared/mail/codeShapes.ts'
import { findCodes, judgedOf } from '../../shared/mail/codes.ts'
import {
  labelsOf,
  namesCode,
  namesCompany,
  namesMeeting,
  namesTrade,
  saysUse,
} from '../../shared/mail/codeWords.ts'
import { cascade, readDeclarations, StyleSheet } from '../../shared/mail/cssRules.ts'
import { PAGE, sightOf } from '../../shared/mail/hiddenStyle.ts'
import { htmlToDescribedText, htmlToMarkedText, htmlToText } from '../../shared/mail/htmlToText.ts'
import { explains, isVague, purposeOfPath, purposeOfText } from '../../shared/mail/linkWords.ts'
import { findLinks } from '../../shared/mail/mailLinks.ts'
import { holdsTags, readableText, saysElse } from '../../shared/mail/readableText.ts'
import { replyText, replyTextFromHtml } from '../../shared/mail/replyText.ts'
import * as attribution from '../../shared/mail/replyTextAttribution.ts'
import * as cutOff from '../../shared/mail/replyTextCutOff.ts'
import * as device from '../../shared/mail/replyTextDevice.ts'
import * as headers from '../../shared/mail/replyTextHeaders.ts'
import * as joined from '../../shared/mail/replyTextJoined.ts'
import * as markers from '../../shared/mail/replyTextMarkers.ts'
import * as signature from '../../shared/mail/replyTextSignature.ts'
import { stripTags, tooComplex } from '../../shared/mail/stripTags.ts'
import { visibleHtml } from '../../shared/mail/visibleHtml.ts'
import { CSS, HTML, TEXT, URL_TEXT } from './grammars.ts'
import { HTML_MAX, MAIL_MAX, mailReader } from './mailReader.ts'
import type { Reader } from './reader.ts'
import { CODES, SLOW_HTML } from './slowTexts.ts'

const LINE_MAX = 400
/** Readers of one line in a mail. The others read a text, and some the lines below it. */
const LINE_READERS = new Set(
  'attributionEndingAt beforeCutOff isHeaderBlock startsSignature isClosingDeviceLine'.split(' '),
)
const REPLY_PARTS = {
  'replyTextAttribution.ts': attribution,
  'replyTextCutOff.ts': cutOff,
  'replyTextDevice.ts': device,
  'replyTextHeaders.ts': headers,
  'replyTextJoined.ts': joined,
  'replyTextMarkers.ts': markers,
  'replyTextSignature.ts': signature,
}

function readPart(name: string, read: unknown, text: string): unknown {
  const lines = text.split('\n').map(markers.lineView)
  const call = read as (...values: unknown[]) => unknown
  if (!LINE_READERS.has(name)) return call(text, lines.slice(0, headers.MAX_HEADER_LINES))
  return call(lines, Math.max(0, Math.min(lines.length >> 1, lines.length - 2)), 0, 'quote')
}
const STYLED = 256 * 1024

export const MAIL_TEXT_READERS: readonly Reader[] = [
  mailReader('replyText.ts replyText', MAIL_MAX, TEXT, (text) => replyText(text)),
  mailReader('replyText.ts replyTextFromHtml', HTML_MAX, HTML, (text) => replyTextFromHtml(text), {
    budget: 400_000,
  }),
  ...Object.entries(REPLY_PARTS).flatMap(([file, part]) =>
    Object.entries<unknown>(part).flatMap(([name, read]) =>
      typeof read === 'function' && name !== 'oneOf'
        ? [mailReader(`${file} ${name}`, MAIL_MAX, TEXT, (text) => readPart(name, read, text))]
        : [],
    ),
  ),
  mailReader(
    'codes.ts findCodes',
    MAIL_MAX,
    TEXT,
    (text) => findCodes({ subject: text, text, html: text }),
    { own: CODES },
  ),
  mailReader('codes.ts judgedOf', MAIL_MAX, TEXT, (text) =>
    judgedOf({ subject: 'Your code', text, html: text }),
  ),
  mailReader('codeParts.ts codeParts', HTML_MAX, HTML, (shown) =>
    codeParts({ subject: '', text: '', shown, seen: '' }),
  ),
  mailReader('codes.ts findCodes: after a label', MAIL_MAX, TEXT, (text) =>
    findCodes({ subject: 'Your code', text: `Your code is:\n${text}`, html: null }),
  ),
  mailReader('codeShapes.ts plainForm', MAIL_MAX, TEXT, (text) => plainForm(text)),
  // `linesOf` in codes.ts cuts lines.
  mailReader('codeShapes.ts candidatesOf', LINE_MAX, TEXT, (text) => candidatesOf(text)),
  ...Object.entries({ labelsOf, namesCode, namesCompany, namesMeeting, namesTrade, saysUse }).map(
    ([name, read]) => mailReader(`codeWords.ts ${name}`, 3 * LINE_MAX, TEXT, (text) => read(text)),
  ),
  ...Object.entries(phrases).map(([name, read]) =>
    mailReader(`codePhrases.ts ${name}`, LINE_MAX, TEXT, (text) => read(text)),
  ),
  mailReader('mailLinks.ts findLinks: text', MAIL_MAX, TEXT, (text) =>
    findLinks({ subject: text, text, html: null }),
  ),
  mailReader(
    'mailLinks.ts findLinks: HTML',
    HTML_MAX,
    HTML,
    (html) => findLinks({ subject: '', text: '', html }),
    // 500 links of 2,000 characters each.
    { budget: 2_000_000 },
  ),
  mailReader('linkWords.ts purposeOfText', 4_000, TEXT, (text) => purposeOfText(text)),
  ...Object.entries({ explains, isVague }).map(([name, read]) =>
    mailReader(`linkWords.ts ${name}`, 200, TEXT, (text) => read(text)),
  ),
  mailReader('linkWords.ts purposeOfPath', 4_000, URL_TEXT, (text) => purposeOfPath(text)),
  mailReader('cssRules.ts readDeclarations', HTML_MAX, CSS, (text) => readDeclarations(text)),
  mailReader('cssRules.ts StyleSheet', HTML_MAX, CSS, (text) => new StyleSheet(text)),
  mailReader(
    'cssRules.ts StyleSheet: many elements',
    HTML_MAX,
    CSS,
    (text) => {
      const sheet = new StyleSheet(text.slice(0, text.length / 2))
      const names = text.slice(text.length / 2).match(/.{1,8}/gs) ?? []
      const ancestors: { name: string; id: string; classes: string[] }[] = []
      for (const name of names) {
        const element = { name: 'a', id: name, classes: ['a', name] }
        sheet.match(element, ancestors)
        if (ancestors.length < 100) ancestors.push(element)
      }
    },
    { budget: STYLED * 8 },
  ),
  mailReader('cssRules.ts cascade', HTML_MAX, CSS, (text) =>
    cascade(text.split('}').map(readDeclarations)),
  ),
  mailReader('hiddenStyle.ts sightOf', HTML_MAX, CSS, (text) =>
    [
      'color',
      'font',
      'font-size',
      'margin',
      'clip',
      'clip-path',
      'transform',
      'background',
      'filter',
      'opacity',
      'text-indent',
      'left',
      'width',
    ].map((property) =>
      sightOf(
        'p',
        new Map([
          ['bgcolor', text],
          ['color', text],
        ]),
        new Map([
          [property, { value: text, important: false }],
          ['position', { value: 'absolute', important: false }],
          ['overflow', { value: 'hidden', important: false }],
        ]),
        PAGE,
      ),
    ),
  ),
  ...Object.entries({ htmlToText, htmlToDescribedText }).map(([name, read]) =>
    mailReader(`htmlToText.ts ${name}`, HTML_MAX, HTML, (text) => read(text), { budget: 400_000 }),
  ),
  mailReader(
    'htmlToText.ts htmlToMarkedText',
    HTML_MAX,
    HTML,
    (text) => htmlToMarkedText(text, true),
    { budget: 400_000 },
  ),
  mailReader('visibleHtml.ts visibleHtml', HTML_MAX, HTML, (text) => visibleHtml(text, HTML_MAX), {
    budget: 400_000,
    own: SLOW_HTML,
  }),
  mailReader(
    'visibleHtml.ts visibleHtml: style',
    HTML_MAX,
    CSS,
    (text) =>
      visibleHtml(
        `<style>${text.slice(0, text.length / 2)}</style>${'<p class="a b"><b id=a>x'.repeat(text.length / 40)}`,
        HTML_MAX,
      ),
    { budget: STYLED * 8 },
  ),
  mailReader('stripTags.ts stripTags', HTML_MAX, HTML, (text) => stripTags(text)),
  mailReader('stripTags.ts tooComplex', HTML_MAX, HTML, (text) => tooComplex(text)),
  mailReader('readableText.ts readableText', MAIL_MAX, TEXT, (text) => readableText(text)),
  mailReader('readableText.ts holdsTags', MAIL_MAX, TEXT, (text) => holdsTags(text)),
  mailReader('readableText.ts saysElse', MAIL_MAX, TEXT, (text) => saysElse(text, text)),
]
