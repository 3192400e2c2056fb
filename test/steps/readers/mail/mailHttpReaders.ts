/** Lists the functions that read complaints, and HTTP requests that deliver mail. */
import {
  postmarkAddress,
  postmarkKeyId,
  provePostmark,
  readPostmark,
} from '../../../../shared/mail/http/postmarkMail.ts'
import {
  detailOf,
  relayIdOf,
  relayIdOfWord,
  withoutNul,
} from '../../../../shared/mail/http/relayReport.ts'
import { readSes } from '../../../../shared/mail/http/sesMail.ts'
import {
  mailSignature,
  proveHeaders,
  readEnvelope,
  requestId,
  SignedMailError,
  signedText,
} from '../../../../shared/mail/http/signedMail.ts'
import { isCertificateUrl, isSnsUrl, proveSns, readSns } from '../../../../shared/mail/http/sns.ts'
import { readComplaint } from '../../../../shared/mail/parse/feedbackReport.ts'
import { HEADER, JSON_TEXT, MIME, TEXT, URL_TEXT } from '../../inputs/grammars.ts'
import type { Reader } from '../reader.ts'
import { MAIL_MAX, mailReader } from './mailReader.ts'

/**
 * Sets the maximum length of one HTTP header field in these tests. Bun's limit for all header fields together is lower.
 */
const FIELD_MAX = 64 * 1024
const SECRET = new Uint8Array(32)

const refusable = (read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SignedMailError)) throw error
    return null
  }
}

const headersOf = (text: string) => ({
  key: text,
  timestamp: '1',
  envelope: text,
  digest: '0'.repeat(64),
  signature: text,
})

const snsOf = (text: string) =>
  JSON.stringify({
    Type: 'Notification',
    MessageId: 'x',
    TopicArn: 'x',
    Message: text,
    Timestamp: 'x',
    SignatureVersion: '2',
    Signature: 'x',
    SigningCertURL: 'x',
  })

const base64url = (text: string) => Buffer.from(text).toString('base64url')

export const MAIL_HTTP_READERS: readonly Reader[] = [
  ...Object.entries({
    'signedMail.ts proveHeaders': (text: string) => proveHeaders(headersOf(text), [SECRET], 0),
    'signedMail.ts readEnvelope': (text: string) => readEnvelope(text),
    'signedMail.ts readEnvelope: JSON': (text: string) => readEnvelope(base64url(text)),
    'signedMail.ts readEnvelope: addresses': (text: string) =>
      readEnvelope(base64url(JSON.stringify({ from: '', to: text.match(/.{1,300}/gs) }))),
    'signedMail.ts signedText': (text: string) => signedText(headersOf(text)),
    'signedMail.ts mailSignature': (text: string) => mailSignature(SECRET, headersOf(text)),
    'signedMail.ts requestId': (text: string) => requestId(text, text),
    'relayReport.ts detailOf': detailOf,
    'relayReport.ts relayIdOf': relayIdOf,
    'relayReport.ts withoutNul': withoutNul,
    'relayReport.ts relayIdOfWord': relayIdOfWord,
    'postmarkMail.ts postmarkAddress': (text: string) =>
      postmarkAddress('https://x.test', text, SECRET),
    'postmarkMail.ts provePostmark': (text: string) =>
      provePostmark({ pathname: text, authorization: text }, text, [SECRET]),
  }).map(([name, read]) =>
    mailReader(`http/${name}`, FIELD_MAX, HEADER, (text) => refusable(() => read(text))),
  ),
  mailReader('http/sns.ts isSnsUrl', FIELD_MAX, URL_TEXT, (text) =>
    isSnsUrl(`https://${text}`, 'eu-west-1'),
  ),
  mailReader('http/sns.ts isCertificateUrl', FIELD_MAX, URL_TEXT, (text) =>
    isCertificateUrl(`https://sns.eu-west-1.amazonaws.com/${text}`, 'eu-west-1'),
  ),
  ...Object.entries({
    'sns.ts readSns': (text: string) => readSns(text),
    'sns.ts readSns: fields': (text: string) => readSns(snsOf(text)),
    'sns.ts proveSns': (text: string) => proveSns(readSns(snsOf(text)), text, 0),
    'sesMail.ts readSes': (text: string) => readSes(text),
    'sesMail.ts readSes: a bounce': (text: string) =>
      readSes(
        JSON.stringify({
          notificationType: 'Bounce',
          mail: { source: text, headers: [{ name: 'Message-ID', value: text }] },
          bounce: {
            bounceType: 'Permanent',
            bouncedRecipients: [{ emailAddress: 'a@b.c', status: text, diagnosticCode: text }],
          },
        }),
      ),
  }).map(([name, read]) =>
    mailReader(`http/${name}`, 512 * 1024, JSON_TEXT, (text) => refusable(() => read(text))),
  ),
  mailReader('http/postmarkMail.ts postmarkKeyId', FIELD_MAX, URL_TEXT, (text) =>
    postmarkKeyId(`/v0/inbound/postmark/${text}`),
  ),
  ...Object.entries({
    readPostmark: (text: string) => text,
    'readPostmark: fields': (text: string) =>
      JSON.stringify({
        RawEmail: text,
        OriginalRecipient: 'a@example.com',
        Headers: [
          { Name: 'Return-Path', Value: text },
          { Name: 'Received-SPF', Value: text },
        ],
      }),
    'readPostmark: a report': (text: string) =>
      JSON.stringify({
        RecordType: 'Bounce',
        Type: 'HardBounce',
        Email: 'a@example.com',
        MessageID: 'x',
        Details: text,
        Content: text,
        From: text,
      }),
  }).map(([name, json]) =>
    mailReader(`http/postmarkMail.ts ${name}`, 1024 * 1024, JSON_TEXT, (text) =>
      refusable(() => readPostmark(json(text))),
    ),
  ),
  mailReader(
    'parse/feedbackReport.ts readComplaint',
    MAIL_MAX,
    {
      tokens: [
        ...TEXT.tokens,
        ...MIME.tokens,
        'Feedback-Type: abuse\n',
        'Return-Path: <a@b.c>\n',
        'Original-Mail-From: ',
        '\n \n',
      ],
    },
    (text) =>
      readComplaint({
        attachments: [
          { mimeType: 'message/feedback-report', content: `Feedback-Type: abuse\n${text}` },
          { mimeType: 'message/rfc822', content: text },
        ],
      } as unknown as Parameters<typeof readComplaint>[0]),
  ),
]
