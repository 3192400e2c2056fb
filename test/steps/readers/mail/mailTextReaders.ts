/** Lists the functions that read the text and the HTML of a mail. */

import { groupedCode, listedCode } from '../../../../shared/mail/codes/backupLists.ts'
import { CodeLine } from '../../../../shared/mail/codes/codeEvidence.ts'
import { codeParts } from '../../../../shared/mail/codes/codeParts.ts'
import * as phrases from '../../../../shared/mail/codes/codePhrases.ts'
import { candidatesOf, plainForm, standsAlone } from '../../../../shared/mail/codes/codeShapes.ts'
import { findCodes, judgedOf } from '../../../../shared/mail/codes/codes.ts'
import {
  labelsOf,
  namesCode,
  namesCompany,
  namesMeeting,
  namesPurpose,
  namesTrade,
  saysUse,
} from '../../../../shared/mail/codes/codeWords.ts'
import { emphasisOf } from '../../../../shared/mail/codes/emphasis.ts'
import {
  linksOfHtml,
  linksOfText,
  oneLine,
} from '../../../../shared/mail/codes/links/foundLinks.ts'
import * as linkPhrases from '../../../../shared/mail/codes/links/linkPhrases.ts'
import {
  cancels,
  codePages,
  confirmsAddress,
  hasSecret,
  isGuide,
  urlParts,
} from '../../../../shared/mail/codes/links/linkUrls.ts'
import {
  explains,
  isVague,
  purposeOfPath,
  purposeOfText,
} from '../../../../shared/mail/codes/links/linkWords.ts'
import { findLinks } from '../../../../shared/mail/codes/links/mailLinks.ts'
import { shownTokens, tokensInLinks } from '../../../../shared/mail/codes/linkTokens.ts'
import * as attribution from '../../../../shared/mail/replyText/attribution.ts'
import * as cutOff from '../../../../shared/mail/replyText/cutOff.ts'
import * as device from '../../../../shared/mail/replyText/device.ts'
import * as headers from '../../../../shared/mail/replyText/headers.ts'
import * as joined from '../../../../shared/mail/replyText/joined.ts'
import * as markers from '../../../../shared/mail/replyText/markers.ts'
import { replyText, replyTextFromHtml } from '../../../../shared/mail/replyText/replyText.ts'
import * as signature from '../../../../shared/mail/replyText/signature.ts'
import * as ticketEntries from '../../../../shared/mail/replyText/ticketEntries.ts'
import {
  cascade,
  readDeclarations,
  StyleSheet,
} from '../../../../shared/mail/visibleText/cssRules.ts'
import { PAGE, sightOf } from '../../../../shared/mail/visibleText/hiddenStyle.ts'
import { readHtml } from '../../../../shared/mail/visibleText/htmlTokens.ts'
import {
  htmlToDescribedText,
  htmlToMarkedText,
  htmlToText,
} from '../../../../shared/mail/visibleText/htmlToText.ts'
import {
  holdsTags,
  readableText,
  saysElse,
} from '../../../../shared/mail/visibleText/readableText.ts'
import { stripTags, tooComplex } from '../../../../shared/mail/visibleText/stripTags.ts'
import { visibleHtml } from '../../../../shared/mail/visibleText/visibleHtml.ts'
import { CSS, HTML, TEXT, URL_TEXT } from '../../inputs/grammars.ts'
import { CODES, SLOW_HTML } from '../../inputs/slowTexts.ts'
import type { Reader } from '../reader.ts'
import { HTML_MAX, MAIL_MAX, mailReader } from './mailReader.ts'

const LINE_MAX = 400
/** Writes each piece of 4,000 characters of a text as an address. */
const addresses = (text: string): string =>
  (text.match(/[\s\S]{1,4000}/g) ?? []).map((part) => `https://a.example/${part}`).join('\n')
/**
 * Names the functions that read a single line of a mail. All other functions read a whole text, or a line together with
 * the lines below it.
 */
const LINE_READERS = new Set(
  'attributionEndingAt beforeCutOff isHeaderBlock startsSignature isClosingDeviceLine'.split(' '),
)
const REPLY_PARTS = {
  'replyText/attribution.ts': attribution,
  'replyText/cutOff.ts': cutOff,
  'replyText/device.ts': device,
  'replyText/headers.ts': headers,
  'replyText/joined.ts': joined,
  'replyText/markers.ts': markers,
  'replyText/signature.ts': signature,
  'replyText/ticketEntries.ts': ticketEntries,
}

function readPart(name: string, read: unknown, text: string): unknown {
  const lines = text.split('\n').map(markers.lineView)
  const call = read as (...values: unknown[]) => unknown
  if (!LINE_READERS.has(name)) return call(text, lines.slice(0, headers.MAX_HEADER_LINES))
  return call(lines, Math.max(0, Math.min(lines.length >> 1, lines.length - 2)), 0, 'quote')
}
const STYLED = 256 * 1024

export const MAIL_TEXT_READERS: readonly Reader[] = [
  mailReader('replyText/replyText.ts replyText', MAIL_MAX, TEXT, (text) => replyText(text)),
  mailReader(
    'replyText/replyText.ts replyTextFromHtml',
    HTML_MAX,
    HTML,
    (text) => replyTextFromHtml(text),
    {
      budget: 400_000,
    },
  ),
  ...Object.entries(REPLY_PARTS).flatMap(([file, part]) =>
    Object.entries<unknown>(part).flatMap(([name, read]) =>
      typeof read === 'function' && name !== 'oneOf'
        ? [mailReader(`${file} ${name}`, MAIL_MAX, TEXT, (text) => readPart(name, read, text))]
        : [],
    ),
  ),
  mailReader(
    'codes/codes.ts findCodes',
    MAIL_MAX,
    TEXT,
    (text) => findCodes({ subject: text, text, html: text }),
    { own: CODES },
  ),
  mailReader('codes/linkTokens.ts tokensInLinks', 20_000, URL_TEXT, (text) =>
    tokensInLinks([`https://a.example/${text}`]),
  ),
  mailReader('codes/linkTokens.ts shownTokens', 400, TEXT, (text) => {
    const line = new CodeLine(`code ${text} a1b2c3d4e5f6`)
    const tokens = new Set(['a1b2c3d4e5f6'])
    return shownTokens([line], 0, { tokens, isAnnounced: true })
  }),
  mailReader('codes/backupLists.ts listedCode', MAIL_MAX, TEXT, (text) => {
    const lines = text.split('\n', 400).map((line) => new CodeLine(line.slice(0, 400)))
    return lines.map((_, at) => listedCode(lines, at))
  }),
  mailReader('codes/backupLists.ts groupedCode', MAIL_MAX, TEXT, (text) => {
    const lines = text.split('\n', 400).map((line) => new CodeLine(line.slice(0, 400)))
    return lines.map((_, at) => groupedCode(lines, at))
  }),
  mailReader('codes/codes.ts judgedOf', MAIL_MAX, TEXT, (text) =>
    judgedOf({ subject: 'Your code', text, html: text }),
  ),
  mailReader('codes/codeParts.ts codeParts', HTML_MAX, HTML, (shown) =>
    codeParts({ subject: '', text: '', shown, seen: '' }),
  ),
  mailReader('codes/codeShapes.ts standsAlone', MAIL_MAX, TEXT, (text) =>
    standsAlone(text, { start: 0, end: 1 }),
  ),
  mailReader('codes/emphasis.ts emphasisOf', HTML_MAX, HTML, (shown) => emphasisOf(shown)),
  mailReader('codes/emphasis.ts emphasisOf: styled', HTML_MAX, HTML, (text) =>
    emphasisOf(`<b style="font:bold ${text}">${text}</b>`),
  ),
  mailReader('codes/codes.ts findCodes: after a label', MAIL_MAX, TEXT, (text) =>
    findCodes({ subject: 'Your code', text: `Your code is:\n${text}`, html: null }),
  ),
  mailReader('codes/codeShapes.ts plainForm', MAIL_MAX, TEXT, (text) => plainForm(text)),
  // The function `linesOf` in codes.ts cuts each line to LINE_MAX characters before `candidatesOf` reads the line, so
  // `candidatesOf` gets no longer line.
  mailReader('codes/codeShapes.ts candidatesOf', LINE_MAX, TEXT, (text) => candidatesOf(text)),
  ...Object.entries({
    labelsOf,
    namesCode,
    namesCompany,
    namesMeeting,
    namesPurpose,
    namesTrade,
    saysUse,
  }).map(([name, read]) =>
    mailReader(`codes/codeWords.ts ${name}`, 3 * LINE_MAX, TEXT, (text) => read(text)),
  ),
  ...Object.entries(phrases).map(([name, read]) =>
    mailReader(`codes/codePhrases.ts ${name}`, LINE_MAX, TEXT, (text) => read(text)),
  ),
  mailReader(
    'codes/links/mailLinks.ts findLinks: text',
    MAIL_MAX,
    TEXT,
    (text) => findLinks({ subject: text, text, html: null }),
    // A mail can have 500 email addresses, and for each of them the measured function reads a context of 300 characters
    // several times. The function may therefore take many additional steps.
    { budget: 1_500_000 },
  ),
  mailReader(
    'codes/links/mailLinks.ts findLinks: addresses',
    MAIL_MAX,
    URL_TEXT,
    (text) => findLinks({ subject: '', text: addresses(text), html: null }),
    { budget: 3_000_000 },
  ),
  mailReader(
    'codes/links/mailLinks.ts findLinks: HTML',
    HTML_MAX,
    HTML,
    (html) => findLinks({ subject: '', text: '', html }),
    // A mail has up to 500 links of 2,000 characters each, so the function may take many additional steps.
    { budget: 2_000_000 },
  ),
  mailReader('codes/links/foundLinks.ts linksOfHtml', HTML_MAX, HTML, (html) => linksOfHtml(html), {
    budget: 2_000_000,
  }),
  mailReader('codes/links/foundLinks.ts linksOfText', MAIL_MAX, URL_TEXT, (text) =>
    linksOfText(addresses(text)),
  ),
  mailReader('codes/links/foundLinks.ts oneLine', MAIL_MAX, TEXT, (text) => oneLine(text)),
  ...Object.entries({
    urlParts,
    hasSecret,
    cancels,
    confirmsAddress,
    codePages: (url: string) => codePages(addresses(url).split(/\s+/)),
    isGuide: (path: string) => isGuide(path, path),
  }).map(([name, read]) =>
    mailReader(`codes/links/linkUrls.ts ${name}`, 4_000, URL_TEXT, (text) =>
      read(`https://a.example/${text}`),
    ),
  ),
  mailReader('codes/links/linkWords.ts purposeOfText', 4_000, TEXT, (text) => purposeOfText(text)),
  ...Object.entries({ explains, isVague }).map(([name, read]) =>
    mailReader(`codes/links/linkWords.ts ${name}`, 200, TEXT, (text) => read(text)),
  ),
  ...Object.entries(linkPhrases).map(([name, read]) =>
    mailReader(`codes/links/linkPhrases.ts ${name}`, 4_000, TEXT, (text) => read(text)),
  ),
  mailReader('codes/links/linkWords.ts purposeOfPath', 4_000, URL_TEXT, (text) =>
    purposeOfPath(text),
  ),
  mailReader('visibleText/cssRules.ts readDeclarations', HTML_MAX, CSS, (text) =>
    readDeclarations(text),
  ),
  mailReader('visibleText/cssRules.ts StyleSheet', HTML_MAX, CSS, (text) => new StyleSheet(text)),
  mailReader(
    'visibleText/cssRules.ts StyleSheet: many elements',
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
  mailReader('visibleText/cssRules.ts cascade', HTML_MAX, CSS, (text) =>
    cascade(text.split('}').map(readDeclarations)),
  ),
  mailReader('visibleText/hiddenStyle.ts sightOf', HTML_MAX, CSS, (text) =>
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
    mailReader(`visibleText/htmlToText.ts ${name}`, HTML_MAX, HTML, (text) => read(text), {
      budget: 400_000,
    }),
  ),
  mailReader(
    'visibleText/htmlToText.ts htmlToMarkedText',
    HTML_MAX,
    HTML,
    (text) => htmlToMarkedText(text, true),
    { budget: 400_000 },
  ),
  mailReader(
    'visibleText/visibleHtml.ts visibleHtml',
    HTML_MAX,
    HTML,
    (text) => visibleHtml(text, HTML_MAX),
    {
      budget: 400_000,
      own: SLOW_HTML,
    },
  ),
  mailReader(
    'visibleText/visibleHtml.ts visibleHtml: style',
    HTML_MAX,
    CSS,
    (text) =>
      visibleHtml(
        `<style>${text.slice(0, text.length / 2)}</style>${'<p class="a b"><b id=a>x'.repeat(text.length / 40)}`,
        HTML_MAX,
      ),
    { budget: STYLED * 8 },
  ),
  mailReader('visibleText/htmlTokens.ts readHtml', HTML_MAX, HTML, (text) =>
    readHtml(text, { text: (one) => one.length, attribute: (_name, value) => value.length }),
  ),
  mailReader('visibleText/stripTags.ts stripTags', HTML_MAX, HTML, (text) => stripTags(text)),
  mailReader('visibleText/stripTags.ts tooComplex', HTML_MAX, HTML, (text) => tooComplex(text)),
  mailReader('visibleText/readableText.ts readableText', MAIL_MAX, TEXT, (text) =>
    readableText(text),
  ),
  mailReader('visibleText/readableText.ts holdsTags', MAIL_MAX, TEXT, (text) => holdsTags(text)),
  mailReader('visibleText/readableText.ts saysElse', MAIL_MAX, TEXT, (text) =>
    saysElse(text, text),
  ),
]
