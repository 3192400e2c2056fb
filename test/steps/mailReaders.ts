/** Readers of mail. */
import { addressParser } from 'postal-mime'
import * as address from '../../shared/mail/address.ts'
import { authenticable } from '../../shared/mail/authenticationBounds.ts'
import { automaticLabels } from '../../shared/mail/automaticMail.ts'
import { readBounceTag } from '../../shared/mail/bounceAddress.ts'
import { candidatesOf, plainForm } from '../../shared/mail/codeShapes.ts'
import { findCodes } from '../../shared/mail/codes.ts'
import {
  labelsOf,
  namesCode,
  namesMeeting,
  namesTrade,
  saysUse,
} from '../../shared/mail/codeWords.ts'
import { cascade, readDeclarations, StyleSheet } from '../../shared/mail/cssRules.ts'
import { readCustomHeaders } from '../../shared/mail/customHeaders.ts'
import { dkimSign, txtStrings } from '../../shared/mail/dkim.ts'
import { isNoSuchMailbox, readBounce } from '../../shared/mail/dsn.ts'
import * as emailRules from '../../shared/mail/emailRules.ts'
import { PAGE, sightOf } from '../../shared/mail/hiddenStyle.ts'
import { htmlToMarkedText, htmlToText } from '../../shared/mail/htmlToText.ts'
import { purposeOfPath, purposeOfText } from '../../shared/mail/linkWords.ts'
import { judgeRecord } from '../../shared/mail/mailDomain.ts'
import { findLinks } from '../../shared/mail/mailLinks.ts'
import { mboxEntry } from '../../shared/mail/mbox.ts'
import { parseBounded } from '../../shared/mail/mimeBounds.ts'
import { parseMail, unparseableMail } from '../../shared/mail/parseMail.ts'
import { contentHash, rawBody, rawHeader, rawHeaders } from '../../shared/mail/rawMail.ts'
import { holdsTags, readableText, saysElse } from '../../shared/mail/readableText.ts'
import { replyText, replyTextFromHtml } from '../../shared/mail/replyText.ts'
import * as attribution from '../../shared/mail/replyTextAttribution.ts'
import * as markers from '../../shared/mail/replyTextMarkers.ts'
import * as signature from '../../shared/mail/replyTextSignature.ts'
import * as query from '../../shared/mail/searchQuery.ts'
import * as terms from '../../shared/mail/searchTerms.ts'
import * as attachment from '../../shared/mail/sentAttachment.ts'
import { stripTags, tooComplex } from '../../shared/mail/stripTags.ts'
import * as threading from '../../shared/mail/threading.ts'
import { parseUnsubscribeMailto, parseUnsubscribeUrl } from '../../shared/mail/unsubscribe.ts'
import { visibleHtml } from '../../shared/mail/visibleHtml.ts'
import { ADDRESSES, CSS, ENCODED, HEADER, HTML, MIME, TEXT, URL_TEXT } from './grammars.ts'
import type { Reader } from './reader.ts'
import type { Grammar } from './shapes.ts'

/** The largest mail that the listener takes (docs/contract.md §4). */
const MAIL_MAX = 35 * 1024 * 1024
const HTML_MAX = 2_000_000
/** The parser's bound of a header block. */
const HEADER_MAX = 1024 * 1024
const TYPED_MAX = 2 * 1024 * 1024
const LINE_MAX = 400

const reader = (
  name: string,
  max: number,
  grammar: Grammar,
  read: (text: string) => unknown,
  budget = 0,
): Reader => ({ name: `mail/${name}`, max, grammar, read, budget })

const bytes = (text: string) => Buffer.from(text)
const HEAD = 'From: a@b.test\r\nSubject: s\r\n'
const mail = (fields: string, body: string) => bytes(`${HEAD}${fields}\r\n\r\n${body}`)
const parse = (fields: string, body: string) => parseMail(mail(fields, body), 'mail.test')
/** Without the empty line that ends a header. */
const inHeader = (text: string) => text.replace(/\r?\n(?=\r?\n)|\r(?=\r)/g, '')
const MIXED = 'Content-Type: multipart/mixed; boundary=b'
const STYLED = 256 * 1024

/** An e-mail as postal-mime gives it, with a text and the same text as a report. */
const bounceOf = (text: string, report?: string) =>
  ({
    headers: [
      { key: 'x-failed-recipients', value: text.slice(0, 2_000) },
      { key: 'return-path', value: '<>' },
    ],
    from: { address: 'mailer-daemon@b.test', name: '' },
    attachments:
      report === undefined ? [] : [{ mimeType: 'message/delivery-status', content: report }],
    text,
    references: text,
  }) as unknown as Parameters<typeof readBounce>[0]

export const MAIL_READERS: readonly Reader[] = [
  reader(
    'parseMail.ts parseMail: text',
    MAIL_MAX,
    TEXT,
    (text) => parse('Content-Type: text/plain; charset=utf-8', text),
    400_000,
  ),
  reader(
    'parseMail.ts parseMail: HTML',
    MAIL_MAX,
    HTML,
    (text) => parse('Content-Type: text/html; charset=utf-8', text),
    400_000,
  ),
  reader('parseMail.ts parseMail: parts', MAIL_MAX, MIME, (text) => parse(MIXED, text), 400_000),
  reader(
    'parseMail.ts parseMail: quoted-printable',
    MAIL_MAX,
    MIME,
    (text) => parse('Content-Transfer-Encoding: quoted-printable', text),
    400_000,
  ),
  reader(
    'parseMail.ts parseMail: base64',
    MAIL_MAX,
    MIME,
    (text) => parse('Content-Transfer-Encoding: base64', text),
    400_000,
  ),
  reader(
    'parseMail.ts parseMail: flowed',
    MAIL_MAX,
    TEXT,
    (text) => parse('Content-Type: text/plain; format=flowed; delsp=yes', text),
    400_000,
  ),
  reader(
    'parseMail.ts parseMail: header',
    HEADER_MAX,
    HEADER,
    (text) => parseMail(bytes(inHeader(text)), 'mail.test'),
    100_000,
  ),
  ...[
    'From',
    'To',
    'Subject',
    'References',
    'Message-ID',
    'Content-Type',
    'Content-Disposition',
    'Content-Type: text/plain; name',
    'Date',
  ].map((field) =>
    reader(
      `parseMail.ts parseMail: ${field}`,
      HEADER_MAX,
      HEADER,
      (text) => parse(`${field}: ${inHeader(text)}`, 'x'),
      100_000,
    ),
  ),
  reader('parseMail.ts unparseableMail', MAIL_MAX, MIME, (text) =>
    unparseableMail(bytes(text), 'mail.test'),
  ),
  reader('mimeBounds.ts parseBounded', MAIL_MAX, MIME, (text) => parseBounded(mail(MIXED, text))),
  reader('postal-mime addressParser', HEADER_MAX, ADDRESSES, (text) => addressParser(text)),
  reader('rawMail.ts rawBody', MAIL_MAX, HEADER, (text) => rawBody(bytes(text), 256 * 1024)),
  reader('rawMail.ts contentHash', MAIL_MAX, HEADER, (text) => contentHash(bytes(text))),
  reader('rawMail.ts rawHeader', MAIL_MAX, HEADER, (text) => rawHeader(bytes(text), 'From')),
  reader('rawMail.ts rawHeaders', MAIL_MAX, HEADER, (text) => rawHeaders(bytes(text), 'From')),
  reader('authenticationBounds.ts authenticable', MAIL_MAX, HEADER, (text) =>
    authenticable(bytes(text)),
  ),
  reader('automaticMail.ts automaticLabels', HEADER_MAX, HEADER, (text) =>
    automaticLabels(text.split('\n').map((line) => ({ key: line.slice(0, 8), value: line }))),
  ),
  reader('replyText.ts replyText', MAIL_MAX, TEXT, (text) => replyText(text)),
  reader(
    'replyText.ts replyTextFromHtml',
    HTML_MAX,
    HTML,
    (text) => replyTextFromHtml(text),
    400_000,
  ),
  ...Object.entries({
    attributionWithin: attribution.attributionWithin,
    ...markers,
    ...signature,
  }).flatMap(([name, read]) =>
    typeof read === 'function' && read.length === 1 && name !== 'oneOf'
      ? [
          reader(
            `${name in markers ? 'replyTextMarkers.ts' : name in signature ? 'replyTextSignature.ts' : 'replyTextAttribution.ts'} ${name}`,
            MAIL_MAX,
            TEXT,
            read as (text: string) => unknown,
          ),
        ]
      : [],
  ),
  ...Object.entries({
    attributionEndingAt: attribution.attributionEndingAt,
    isHeaderBlock: markers.isHeaderBlock,
    startsSignature: signature.startsSignature,
    isClosingDeviceLine: signature.isClosingDeviceLine,
  }).map(([name, read]) =>
    reader(
      `${name in markers ? 'replyTextMarkers.ts' : name in signature ? 'replyTextSignature.ts' : 'replyTextAttribution.ts'} ${name}`,
      MAIL_MAX,
      TEXT,
      (text) => {
        const lines = text.split('\n').map(markers.lineView)
        return (read as (lines: readonly string[], at: number) => unknown)(
          lines,
          Math.floor(lines.length / 2),
        )
      },
    ),
  ),
  reader('codes.ts findCodes', MAIL_MAX, TEXT, (text) =>
    findCodes({ subject: text, text, html: text }),
  ),
  reader('codes.ts findCodes: after a label', MAIL_MAX, TEXT, (text) =>
    findCodes({ subject: 'Your code', text: `Your code is:\n${text}`, html: null }),
  ),
  reader('codeShapes.ts plainForm', MAIL_MAX, TEXT, (text) => plainForm(text)),
  // `linesOf` in codes.ts cuts lines.
  reader('codeShapes.ts candidatesOf', LINE_MAX, TEXT, (text) => candidatesOf(text)),
  ...Object.entries({ labelsOf, namesCode, namesMeeting, namesTrade, saysUse }).map(
    ([name, read]) => reader(`codeWords.ts ${name}`, 3 * LINE_MAX, TEXT, (text) => read(text)),
  ),
  reader('mailLinks.ts findLinks: text', MAIL_MAX, TEXT, (text) =>
    findLinks({ subject: text, text, html: null }),
  ),
  reader(
    'mailLinks.ts findLinks: HTML',
    HTML_MAX,
    HTML,
    (html) => findLinks({ subject: '', text: '', html }),
    // 500 links of 2,000 characters each.
    2_000_000,
  ),
  reader('linkWords.ts purposeOfText', 4_000, TEXT, (text) => purposeOfText(text)),
  reader('linkWords.ts purposeOfPath', 4_000, URL_TEXT, (text) => purposeOfPath(text)),
  reader('cssRules.ts readDeclarations', HTML_MAX, CSS, (text) => readDeclarations(text)),
  reader('cssRules.ts StyleSheet', HTML_MAX, CSS, (text) => new StyleSheet(text)),
  reader(
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
    STYLED * 8,
  ),
  reader('cssRules.ts cascade', HTML_MAX, CSS, (text) =>
    cascade(text.split('}').map(readDeclarations)),
  ),
  reader('hiddenStyle.ts sightOf', HTML_MAX, CSS, (text) =>
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
  reader('htmlToText.ts htmlToText', HTML_MAX, HTML, (text) => htmlToText(text), 400_000),
  reader(
    'htmlToText.ts htmlToMarkedText',
    HTML_MAX,
    HTML,
    (text) => htmlToMarkedText(text, true),
    400_000,
  ),
  reader(
    'visibleHtml.ts visibleHtml',
    HTML_MAX,
    HTML,
    (text) => visibleHtml(text, HTML_MAX),
    400_000,
  ),
  reader(
    'visibleHtml.ts visibleHtml: style',
    HTML_MAX,
    CSS,
    (text) =>
      visibleHtml(
        `<style>${text.slice(0, text.length / 2)}</style>${'<p class="a b"><b id=a>x'.repeat(text.length / 40)}`,
        HTML_MAX,
      ),
    STYLED * 8,
  ),
  reader('stripTags.ts stripTags', HTML_MAX, HTML, (text) => stripTags(text)),
  reader('stripTags.ts tooComplex', HTML_MAX, HTML, (text) => tooComplex(text)),
  reader('readableText.ts readableText', MAIL_MAX, TEXT, (text) => readableText(text)),
  reader('readableText.ts holdsTags', MAIL_MAX, TEXT, (text) => holdsTags(text)),
  reader('readableText.ts saysElse', MAIL_MAX, TEXT, (text) => saysElse(text, text)),
  reader('searchQuery.ts parseSearch', TYPED_MAX, TEXT, (text) => query.parseSearch(text)),
  reader('searchQuery.ts parseField', TYPED_MAX, TEXT, (text) => query.parseField('from', text)),
  // parseSearch bounds the terms; the text is that of a message.
  ...Object.entries({
    searchText: (parsed: query.SearchQuery) => query.searchText('p', parsed),
    candidatesText: (parsed: query.SearchQuery) => query.candidatesText('p', parsed),
    holdsIn: (parsed: query.SearchQuery, text: string) => query.holdsIn(parsed, { text: [text] }),
    highlight: (parsed: query.SearchQuery, text: string) => query.highlight(text, parsed, 'text'),
  }).map(([name, read]) =>
    reader(
      `searchQuery.ts ${name}`,
      MAIL_MAX,
      TEXT,
      (text) => {
        const words = [
          'a OR b -c "a a a a a b" abc* code*',
          '中中中 OR あああ',
          '"1 1 1 1 2" -"a b"',
          text.slice(0, 60),
        ]
        for (const typed of words) {
          let parsed: query.SearchQuery | null = null
          try {
            parsed = query.parseSearch(typed)
          } catch {}
          if (parsed !== null) read(parsed, text)
        }
      },
      60_000,
    ),
  ),
  ...Object.entries({
    termsOf: terms.termsOf,
    addressTerm: terms.addressTerm,
    isSingleLetter: terms.isSingleLetter,
    isPair: terms.isPair,
    searchKey: terms.searchKey,
    lexeme: (text: string) => terms.lexeme('k', text),
  }).map(([name, read]) => reader(`searchTerms.ts ${name}`, MAIL_MAX, TEXT, (text) => read(text))),
  ...Object.entries({
    searchVector: terms.searchVector,
    binarySearchVector: terms.binarySearchVector,
  }).map(([name, read]) =>
    reader(`searchTerms.ts ${name}`, MAIL_MAX, TEXT, (text) => {
      const list = text.slice(0, 1_000 * 320).split(',')
      return read('p', { subject: text, from: list, to: list, text })
    }),
  ),
  ...Object.entries({
    parseAddress: address.parseAddress,
    restoreQuotes: address.restoreQuotes,
    parseMailbox: address.parseMailbox,
    isDomain: address.isDomain,
    asciiDomain: address.asciiDomain,
    domainOf: address.domainOf,
    addressKey: address.addressKey,
    recipientKeys: address.recipientKeys,
  }).map(([name, read]) =>
    reader(`address.ts ${name}`, HEADER_MAX, ADDRESSES, (text) => read(text)),
  ),
  reader('bounceAddress.ts readBounceTag', 320, ADDRESSES, (text) => readBounceTag(text)),
  reader('customHeaders.ts readCustomHeaders', TYPED_MAX, HEADER, (text) =>
    readCustomHeaders(Object.fromEntries(text.split(':').map((part) => [part, part])), true),
  ),
  reader('dkim.ts dkimSign', MAIL_MAX, MIME, (text) =>
    dkimSign(bytes(`From: a@b\r\n\r\n${text}`), []),
  ),
  reader('dkim.ts txtStrings', TYPED_MAX, TEXT, (text) => txtStrings(text)),
  reader('dsn.ts readBounce: text', MAIL_MAX, TEXT, (text) => readBounce(bounceOf(text))),
  reader('dsn.ts readBounce: addresses', MAIL_MAX, ADDRESSES, (text) =>
    readBounce(bounceOf(`550 ${text}`)),
  ),
  reader(
    'dsn.ts readBounce: report',
    MAIL_MAX,
    {
      tokens: [
        ...TEXT.tokens,
        ...MIME.tokens,
        'Final-Recipient: rfc822; a@b.c\nAction: failed\nStatus: 5.1.1\n\n',
        'Diagnostic-Code: ',
        'Message-ID: <a@b>\n',
        '\n \n',
        '\n\t',
      ],
    },
    (text) => readBounce(bounceOf('', text)),
  ),
  reader('dsn.ts isNoSuchMailbox', 64 * 1024, TEXT, (text) => isNoSuchMailbox(text)),
  reader('emailRules.ts parseRuleValue', TYPED_MAX, ADDRESSES, (text) =>
    emailRules.parseRuleValue(text),
  ),
  reader('emailRules.ts isAllowed', HEADER_MAX, ADDRESSES, (text) =>
    emailRules.isAllowed([{ type: 'BLOCK', scope: 'RECEIVE', value: '*@b.c' }], 'RECEIVE', text),
  ),
  reader('mailDomain.ts judgeRecord', 64 * 1024, TEXT, (text) =>
    (['ownership', 'mx', 'dkim', 'spf', 'dmarc'] as const).map((purpose) =>
      judgeRecord({ purpose, value: 'v=spf1 include:a ~all; p=x' } as never, [
        text,
        `v=DMARC1${text}`,
        `v=spf1 ${text}`,
        `p=${text}`,
      ]),
    ),
  ),
  reader('mbox.ts mboxEntry', MAIL_MAX, MIME, (text) =>
    mboxEntry({ sender: text, at: new Date(0), bytes: bytes(text) }),
  ),
  reader('sentAttachment.ts isAttachmentType', TYPED_MAX, HEADER, (text) =>
    attachment.isAttachmentType(text),
  ),
  reader('sentAttachment.ts parseContentId', TYPED_MAX, HEADER, (text) =>
    attachment.parseContentId(text),
  ),
  reader('sentAttachment.ts decodeBase64', MAIL_MAX, ENCODED, (text) =>
    attachment.decodeBase64(text),
  ),
  ...Object.entries({
    isMessageId: threading.isMessageId,
    parseReferences: threading.parseReferences,
    replySubject: threading.replySubject,
    messageIdHash: threading.messageIdHash,
    alternativeMessageId: (text: string) => threading.alternativeMessageId(text, 1),
    baseSubject: threading.baseSubject,
    subjectKey: threading.subjectKey,
  }).map(([name, read]) =>
    reader(`threading.ts ${name}`, HEADER_MAX, HEADER, (text) => read(text)),
  ),
  ...Object.entries({
    ancestors: (list: string[]) =>
      threading.ancestors({ messageId: 'a', inReplyTo: list, references: list }),
    replyReferences: (list: string[]) =>
      threading.replyReferences({ messageId: 'a', inReplyTo: list, references: list }),
    sameParticipants: (list: string[]) => threading.sameParticipants(list, list.toReversed()),
  }).map(([name, read]) =>
    reader(`threading.ts ${name}`, HEADER_MAX, ADDRESSES, (text) =>
      read(text.match(/.{1,6}/gs) ?? []),
    ),
  ),
  reader('unsubscribe.ts parseUnsubscribeUrl', TYPED_MAX, URL_TEXT, (text) =>
    parseUnsubscribeUrl(text),
  ),
  reader('unsubscribe.ts parseUnsubscribeMailto', TYPED_MAX, ADDRESSES, (text) =>
    parseUnsubscribeMailto(text),
  ),
]
