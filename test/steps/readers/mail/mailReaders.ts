/** Lists functions that read whole mails, mail headers, mail addresses and searches. */
import { gzipSync } from 'fflate'
import { addressParser } from 'postal-mime'
import * as address from '../../../../shared/mail/address.ts'
import { readBounceTag } from '../../../../shared/mail/compose/bounceAddress.ts'
import { readCustomHeaders } from '../../../../shared/mail/compose/customHeaders.ts'
import { dkimSign, txtStrings } from '../../../../shared/mail/compose/dkim.ts'
import * as attachment from '../../../../shared/mail/compose/sentAttachment.ts'
import {
  parseUnsubscribeMailto,
  parseUnsubscribeUrl,
} from '../../../../shared/mail/compose/unsubscribe.ts'
import * as emailRules from '../../../../shared/mail/emailRules.ts'
import { judgeRecord } from '../../../../shared/mail/mailDomain.ts'
import { allowsHost, policyIdOf } from '../../../../shared/mail/mtaSts.ts'
import { authenticable, countFields } from '../../../../shared/mail/parse/authenticationBounds.ts'
import { automaticLabels } from '../../../../shared/mail/parse/automaticMail.ts'
import { isNoSuchMailbox, readBounce } from '../../../../shared/mail/parse/dsn.ts'
import { mboxEntry } from '../../../../shared/mail/parse/mbox.ts'
import { parseBounded } from '../../../../shared/mail/parse/mimeBounds.ts'
import { parseMail, unparseableMail } from '../../../../shared/mail/parse/parseMail.ts'
import {
  contentHash,
  rawBody,
  rawHeader,
  rawHeaders,
} from '../../../../shared/mail/parse/rawMail.ts'
import {
  largest,
  ReportError,
  reportCount,
  reportTime,
} from '../../../../shared/mail/reports/aggregateReport.ts'
import { readDmarcReport } from '../../../../shared/mail/reports/dmarcReport.ts'
import { readReport } from '../../../../shared/mail/reports/readReport.ts'
import {
  isReportFile,
  isReportInbox,
  REPORT_FILE_MAX_BYTES,
} from '../../../../shared/mail/reports/reportMail.ts'
import { readTlsReport } from '../../../../shared/mail/reports/tlsReport.ts'
import { unpackReport } from '../../../../shared/mail/reports/unpackReport.ts'
import * as query from '../../../../shared/mail/search/searchQuery.ts'
import * as terms from '../../../../shared/mail/search/searchTerms.ts'
import {
  mayMatch,
  Places,
  segmentMatches,
  wantedKey,
  wantedTerms,
} from '../../../../shared/mail/search/segmentMatches.ts'
import * as blocks from '../../../../shared/mail/search/termBlocks.ts'
import * as threading from '../../../../shared/mail/threading.ts'
import { isVersioned } from '../../../../shared/mail/versionedText.ts'
import { ADDRESSES, ENCODED, HEADER, HTML, MIME, TEXT, URL_TEXT } from '../../inputs/grammars.ts'
import { ADDRESSES_AGAIN } from '../../inputs/slowTexts.ts'
import type { Reader } from '../reader.ts'
import { HEADER_MAX, MAIL_MAX, mailReader, TYPED_MAX } from './mailReader.ts'

const bytes = (text: string) => Buffer.from(text)
const HEAD = 'From: a@b.test\r\nSubject: s\r\n'
const mail = (fields: string, body: string) => bytes(`${HEAD}${fields}\r\n\r\n${body}`)
const parse = (fields: string, body: string) => parseMail(mail(fields, body), 'mail.test')
/** Removes empty lines from a text that is put into a mail header, because an empty line would end the header. */
const inHeader = (text: string) => text.replace(/\r?\n(?=\r?\n)|\r(?=\r)/g, '')
const MIXED = 'Content-Type: multipart/mixed; boundary=b'

/** Makes a mail in the form of postal-mime, with a text and an optional report. */
const bounceOf = (text: string, report?: string) =>
  ({
    headers: [
      { key: 'x-failed-recipients', value: text },
      { key: 'return-path', value: '<>' },
    ],
    from: { address: 'mailer-daemon@b.test', name: '' },
    attachments:
      report === undefined ? [] : [{ mimeType: 'message/delivery-status', content: report }],
    text,
    references: text,
  }) as unknown as Parameters<typeof readBounce>[0]

export const MAIL_READERS: readonly Reader[] = [
  mailReader(
    'parse/parseMail.ts parseMail: text',
    MAIL_MAX,
    TEXT,
    (text) => parse('Content-Type: text/plain; charset=utf-8', text),
    { budget: 400_000 },
  ),
  mailReader(
    'parse/parseMail.ts parseMail: HTML',
    MAIL_MAX,
    HTML,
    (text) => parse('Content-Type: text/html; charset=utf-8', text),
    { budget: 400_000 },
  ),
  mailReader('parse/parseMail.ts parseMail: parts', MAIL_MAX, MIME, (text) => parse(MIXED, text), {
    budget: 400_000,
  }),
  mailReader(
    'parse/parseMail.ts parseMail: quoted-printable',
    MAIL_MAX,
    MIME,
    (text) => parse('Content-Transfer-Encoding: quoted-printable', text),
    { budget: 400_000 },
  ),
  mailReader(
    'parse/parseMail.ts parseMail: base64',
    MAIL_MAX,
    MIME,
    (text) => parse('Content-Transfer-Encoding: base64', text),
    { budget: 400_000 },
  ),
  mailReader(
    'parse/parseMail.ts parseMail: flowed',
    MAIL_MAX,
    TEXT,
    (text) => parse('Content-Type: text/plain; format=flowed; delsp=yes', text),
    { budget: 400_000 },
  ),
  mailReader(
    'parse/parseMail.ts parseMail: header',
    HEADER_MAX,
    HEADER,
    (text) => parseMail(bytes(inHeader(text)), 'mail.test'),
    { budget: 100_000 },
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
    mailReader(
      `parse/parseMail.ts parseMail: ${field}`,
      HEADER_MAX,
      HEADER,
      (text) => parse(`${field}: ${inHeader(text)}`, 'x'),
      { budget: 100_000 },
    ),
  ),
  mailReader('parse/parseMail.ts unparseableMail', MAIL_MAX, MIME, (text) =>
    unparseableMail(bytes(text), 'mail.test'),
  ),
  mailReader('parse/mimeBounds.ts parseBounded', MAIL_MAX, MIME, (text) =>
    parseBounded(mail(MIXED, text)),
  ),
  mailReader('postal-mime addressParser', HEADER_MAX, ADDRESSES, (text) => addressParser(text)),
  mailReader('parse/rawMail.ts rawBody', MAIL_MAX, HEADER, (text) =>
    rawBody(bytes(text), 256 * 1024),
  ),
  mailReader('parse/rawMail.ts contentHash', MAIL_MAX, HEADER, (text) => contentHash(bytes(text))),
  mailReader('parse/rawMail.ts rawHeader', MAIL_MAX, HEADER, (text) =>
    rawHeader(bytes(text), 'From'),
  ),
  mailReader('parse/rawMail.ts rawHeaders', MAIL_MAX, HEADER, (text) =>
    rawHeaders(bytes(text), 'From'),
  ),
  mailReader('parse/authenticationBounds.ts authenticable', MAIL_MAX, HEADER, (text) =>
    authenticable(bytes(text)),
  ),
  mailReader('parse/authenticationBounds.ts countFields', MAIL_MAX, HEADER, (text) =>
    countFields(bytes(text)),
  ),
  mailReader('parse/automaticMail.ts automaticLabels', HEADER_MAX, HEADER, (text) =>
    automaticLabels(text.split('\n').map((line) => ({ key: line.slice(0, 8), value: line }))),
  ),
  mailReader('search/searchQuery.ts parseSearch', TYPED_MAX, TEXT, (text) =>
    query.parseSearch(text),
  ),
  mailReader('search/searchQuery.ts parseField', TYPED_MAX, TEXT, (text) =>
    query.parseField('from', text),
  ),
  // parseSearch limits the number of search terms, so the test input is the text of a message, and not the query.
  ...Object.entries({
    'segmentMatches.ts wantedTerms': (parsed: query.SearchQuery) => wantedTerms([parsed]),
    'segmentMatches.ts mayMatch': (parsed: query.SearchQuery) => mayMatch([parsed], new Map()),
    'segmentMatches.ts segmentMatches': (parsed: query.SearchQuery) => {
      const range = { firstLeaf: 1, lastLeaf: 1 }
      const all = Places.all(range)
      const placesOf = new Map(wantedTerms([parsed]).map((term) => [wantedKey(term), all]))
      segmentMatches(range, [parsed], placesOf).byLeaf()
    },
    'searchQuery.ts searchText': (parsed: query.SearchQuery) => query.searchText('p', parsed),
    'searchQuery.ts holdsIn': (parsed: query.SearchQuery, text: string) =>
      query.holdsIn(parsed, { text: [text] }),
    'searchQuery.ts highlight': (parsed: query.SearchQuery, text: string) =>
      query.highlight(text, parsed, 'text'),
  }).map(([name, read]) =>
    mailReader(
      `search/${name}`,
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
      { budget: 60_000 },
    ),
  ),
  ...Object.entries({
    termsOf: terms.termsOf,
    addressTerm: terms.addressTerm,
    isSingleLetter: terms.isSingleLetter,
    isPair: terms.isPair,
    searchKey: terms.searchKey,
    lexeme: (text: string) => terms.lexeme('k', text),
  }).map(([name, read]) =>
    mailReader(`search/searchTerms.ts ${name}`, MAIL_MAX, TEXT, (text) => read(text)),
  ),
  ...['BlockWriter', 'byteString', 'eachTermOf'].map((name) =>
    mailReader(`search/termBlocks.ts ${name}`, MAIL_MAX, TEXT, (text) => {
      const words = new Set(terms.termsOf(text).map(({ term }) => blocks.byteString(term)))
      const writer = new blocks.BlockWriter()
      for (const word of [...words].sort()) writer.add(word, Buffer.of(1, 1, 1))
      for (const block of writer.take(true)) blocks.eachTermOf(block, () => true)
    }),
  ),
  ...Object.entries({
    searchVector: terms.searchVector,
    binarySearchVector: terms.binarySearchVector,
  }).map(([name, read]) =>
    mailReader(`search/searchTerms.ts ${name}`, MAIL_MAX, TEXT, (text) => {
      const list = text.slice(0, 1_000 * 320).split(',')
      return read('p', { subject: text, from: list, to: list, text })
    }),
  ),
  ...Object.entries({
    parseAddress: address.parseAddress,
    parseAnyAddress: address.parseAnyAddress,
    isEnvelopeAddress: address.isEnvelopeAddress,
    restoreQuotes: address.restoreQuotes,
    parseMailbox: address.parseMailbox,
    isDomain: address.isDomain,
    asciiDomain: address.asciiDomain,
    domainOf: address.domainOf,
    addressKey: address.addressKey,
    recipientKeys: address.recipientKeys,
  }).map(([name, read]) =>
    mailReader(`address.ts ${name}`, HEADER_MAX, ADDRESSES, (text) => read(text)),
  ),
  mailReader('compose/bounceAddress.ts readBounceTag', 320, ADDRESSES, (text) =>
    readBounceTag(text),
  ),
  mailReader('compose/customHeaders.ts readCustomHeaders', TYPED_MAX, HEADER, (text) =>
    readCustomHeaders(Object.fromEntries(text.split(':').map((part) => [part, part])), true),
  ),
  mailReader('compose/dkim.ts dkimSign', MAIL_MAX, MIME, (text) =>
    dkimSign(bytes(`From: a@b\r\n\r\n${text}`), []),
  ),
  mailReader('compose/dkim.ts txtStrings', TYPED_MAX, TEXT, (text) => txtStrings(text)),
  mailReader(
    'parse/dsn.ts readBounce: text',
    MAIL_MAX,
    TEXT,
    (text) => readBounce(bounceOf(text)),
    {
      own: { addresses: ADDRESSES_AGAIN },
    },
  ),
  mailReader('parse/dsn.ts readBounce: addresses', MAIL_MAX, ADDRESSES, (text) =>
    readBounce(bounceOf(`550 ${text}`)),
  ),
  mailReader(
    'parse/dsn.ts readBounce: report',
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
  mailReader('parse/dsn.ts isNoSuchMailbox', 64 * 1024, TEXT, (text) => isNoSuchMailbox(text)),
  mailReader('emailRules.ts parseRuleValue', TYPED_MAX, ADDRESSES, (text) =>
    emailRules.parseRuleValue(text),
  ),
  mailReader('emailRules.ts decidingType', HEADER_MAX, ADDRESSES, (text) =>
    emailRules.decidingType(text, (value) => (value === '*@b.c' ? 'BLOCK' : undefined)),
  ),
  mailReader('emailRules.ts isAllowed', HEADER_MAX, ADDRESSES, (text) =>
    emailRules.isAllowed([{ type: 'BLOCK', scope: 'RECEIVE', value: '*@b.c' }], 'RECEIVE', text),
  ),
  mailReader('versionedText.ts isVersioned', 64 * 1024, TEXT, (text) =>
    ['spf1', 'DMARC1'].map((version) => isVersioned(`v${text}`, version)),
  ),
  mailReader('mailDomain.ts judgeRecord', 64 * 1024, TEXT, (text) =>
    (['ownership', 'mx', 'dkim', 'spf', 'dmarc'] as const).map((purpose) =>
      judgeRecord({ purpose, value: 'v=spf1 include:a ~all; p=x' } as never, [
        text,
        `v=DMARC1${text}`,
        `v=spf1 ${text}`,
        `p=${text}`,
      ]),
    ),
  ),
  mailReader('mtaSts.ts policyIdOf', 64 * 1024, TEXT, (text) =>
    policyIdOf([`v=STSv1;${text}`, `v=STSv1; id=${text}`]),
  ),
  mailReader('mtaSts.ts allowsHost', 16 * 1024, TEXT, (text) =>
    allowsHost({ mx: text.split('\n') }, 'mx.example.com'),
  ),
  ...Object.entries({
    'readReport.ts readReport': (text: string) => readReport(bytes(text)),
    'readReport.ts readReport: XML': (text: string) =>
      readReport(bytes(`<feedback><record>${text}`)),
    'readReport.ts readReport: gzip': (text: string) => readReport(gzipSync(bytes(text))),
    'unpackReport.ts unpackReport: gzip': (text: string) =>
      unpackReport(bytes(`\x1f\x8b\x08${text}`)),
    'unpackReport.ts unpackReport: zip': (text: string) => unpackReport(bytes(`PK\x03\x04${text}`)),
    'dmarcReport.ts readDmarcReport': readDmarcReport,
    'tlsReport.ts readTlsReport': readTlsReport,
    'aggregateReport.ts reportTime': reportTime,
    'aggregateReport.ts reportCount': reportCount,
  }).map(([name, read]) =>
    mailReader(`reports/${name}`, REPORT_FILE_MAX_BYTES, HTML, (text) => {
      try {
        return read(text)
      } catch (error) {
        if (!(error instanceof ReportError)) throw error
        return null
      }
    }),
  ),
  mailReader('reports/aggregateReport.ts largest', 64 * 1024, TEXT, (text) =>
    largest([...text].map((source, count) => ({ source, count, isPassed: true, result: '' }))),
  ),
  mailReader('reports/reportMail.ts isReportInbox', HEADER_MAX, ADDRESSES, (text) =>
    isReportInbox(text, undefined),
  ),
  mailReader('reports/reportMail.ts isReportFile', HEADER_MAX, HEADER, (text) =>
    isReportFile({ filename: text, contentType: text, size: 1 }),
  ),
  mailReader('parse/mbox.ts mboxEntry', MAIL_MAX, MIME, (text) =>
    mboxEntry({ sender: text, at: new Date(0), bytes: bytes(text) }),
  ),
  mailReader('compose/sentAttachment.ts isAttachmentType', TYPED_MAX, HEADER, (text) =>
    attachment.isAttachmentType(text),
  ),
  mailReader('compose/sentAttachment.ts parseContentId', TYPED_MAX, HEADER, (text) =>
    attachment.parseContentId(text),
  ),
  mailReader('compose/sentAttachment.ts decodeBase64', MAIL_MAX, ENCODED, (text) =>
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
    mailReader(`threading.ts ${name}`, HEADER_MAX, HEADER, (text) => read(text)),
  ),
  ...Object.entries({
    ancestors: (list: string[]) =>
      threading.ancestors({ messageId: 'a', inReplyTo: list, references: list }),
    replyReferences: (list: string[]) =>
      threading.replyReferences({ messageId: 'a', inReplyTo: list, references: list }),
    sameParticipants: (list: string[]) => threading.sameParticipants(list, list.toReversed()),
  }).map(([name, read]) =>
    mailReader(`threading.ts ${name}`, HEADER_MAX, ADDRESSES, (text) =>
      read(text.match(/.{1,6}/gs) ?? []),
    ),
  ),
  mailReader('compose/unsubscribe.ts parseUnsubscribeUrl', TYPED_MAX, URL_TEXT, (text) =>
    parseUnsubscribeUrl(text),
  ),
  mailReader('compose/unsubscribe.ts parseUnsubscribeMailto', TYPED_MAX, ADDRESSES, (text) =>
    parseUnsubscribeMailto(text),
  ),
]
