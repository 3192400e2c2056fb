import { describe, expect, test } from 'bun:test'
import { sign, X509Certificate } from 'node:crypto'
import { isCertificateUrl, isSnsUrl, proveSns, readSns } from '../../../../shared/mail/http/sns.ts'
import { newCertificate, newRsaCertificate } from '../../../support/process/tlsServer.ts'

const MESSAGE = {
  Type: 'Notification',
  MessageId: 'm-1',
  TopicArn: 'arn:aws:sns:eu-west-1:1:mail',
  Message: '{}',
  Timestamp: '2026-11-25T16:00:00.000Z',
  SignatureVersion: '2',
  Signature: 'c2ln',
  SigningCertURL: 'https://sns.eu-west-1.amazonaws.com/a.pem',
}
const read = (changes: Record<string, unknown> = {}) =>
  readSns(JSON.stringify({ ...MESSAGE, ...changes }))

describe('an SNS message is refused if its type, its URL or one of its fields is not valid', () => {
  test('an SNS message is read with the fields that the signature covers, sorted by their names', () => {
    expect(read()).toEqual({
      type: 'Notification',
      messageId: 'm-1',
      topicArn: MESSAGE.TopicArn,
      message: '{}',
      signatureVersion: '2',
      signature: 'c2ln',
      signingCertUrl: MESSAGE.SigningCertURL,
      subscribeUrl: '',
      signedText: `Message\n{}\nMessageId\nm-1\nTimestamp\n${MESSAGE.Timestamp}\nTopicArn\n${MESSAGE.TopicArn}\nType\nNotification\n`,
    })
    expect(read({ Subject: 'Mail' }).signedText).toContain(
      'MessageId\nm-1\nSubject\nMail\nTimestamp',
    )
  })

  test('an SNS message may have a content of any length, but its other fields have at most 2,000 characters', () => {
    expect(read({ Message: 'x'.repeat(5_000) }).message).toHaveLength(5_000)
    expect(read({ TopicArn: 'x'.repeat(2_000) }).topicArn).toHaveLength(2_000)
    expect(() => read({ TopicArn: 'x'.repeat(2_001) })).toThrow(
      'TopicArn: must be a text of at most 2000 characters',
    )
  })

  test.each(['MessageId', 'TopicArn', 'Message', 'Signature', 'SigningCertURL', 'Timestamp'])(
    'an SNS message is refused if the field %s is missing, or if the field %s is no text',
    (name) => {
      for (const value of [undefined, 7, null])
        expect(() => read({ [name]: value })).toThrow(`${name}: must be a text of at most `)
    },
  )

  test('an SNS message is refused if its type or the version of its signature is unknown', () => {
    expect(() => read({ Type: 'Order' })).toThrow(
      'Type: must be Notification, SubscriptionConfirmation, UnsubscribeConfirmation',
    )
    expect(() => read({ SignatureVersion: '3' })).toThrow('SignatureVersion: must be 1 or 2')
    expect(() => readSns('{')).toThrow('The body must be valid JSON')
    for (const json of ['null', '7', '"x"', '[]'])
      expect(() => readSns(json)).toThrow('Type: must be ')
  })

  test('an SNS message that asks to confirm a subscription must name the URL for the confirmation', () => {
    const confirmation = { Type: 'SubscriptionConfirmation', Token: 't' }
    const SubscribeURL = 'https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription'
    const { subscribeUrl, signedText } = read({ ...confirmation, SubscribeURL })
    expect(subscribeUrl).toBe(SubscribeURL)
    expect(signedText).toContain(`SubscribeURL\n${SubscribeURL}\nTimestamp\n`)
    expect(signedText).toContain('Token\nt\nTopicArn\n')
    expect(() => read(confirmation)).toThrow('SubscribeURL: must be a text')
  })
})

test('a URL of SNS must use HTTPS without credentials, and must have the SNS host of the region', () => {
  const host = 'sns.eu-west-1.amazonaws.com'
  expect(isSnsUrl(`https://${host}/`, 'eu-west-1')).toBe(true)
  expect(isSnsUrl(`https://${host}.cn/`, 'eu-west-1')).toBe(true)
  const long = `https://${host}/`.padEnd(2_000, 'x')
  expect([isSnsUrl(long, 'eu-west-1'), isSnsUrl(`${long}x`, 'eu-west-1')]).toEqual([true, false])
  for (const bad of [
    `http://${host}/`,
    `https://a@${host}/`,
    `https://:b@${host}/`,
    `https://${host}:8443/`,
    `https://${host}.evil.example/`,
    'https://sns.us-east-1.amazonaws.com/',
    'no url',
  ])
    expect([bad, isSnsUrl(bad, 'eu-west-1')]).toEqual([bad, false])
})

test('the URL of an SNS certificate has a path of one file name that ends with `.pem`', () => {
  const at = (path: string) =>
    isCertificateUrl(`https://sns.eu-west-1.amazonaws.com${path}`, 'eu-west-1')
  expect(at('/SimpleNotificationService-0f.pem')).toBe(true)
  for (const path of ['/a/b.pem', '/.pem', '/a.pem/x', '/a.txt', `/${'a'.repeat(201)}.pem`])
    expect([path, at(path)]).toEqual([path, false])
})

describe('an SNS message is refused if its signature is wrong', () => {
  const own = newRsaCertificate('sns.amazonaws.com')
  const message = read()
  const signed = (version: '1' | '2', { digest = '', key = own.key as string } = {}) => ({
    ...message,
    signatureVersion: version,
    signature: sign(
      digest || (version === '2' ? 'RSA-SHA256' : 'RSA-SHA1'),
      Buffer.from(message.signedText),
      key,
    ).toString('base64'),
  })
  const nowMs = Date.now()
  const prove = (one: typeof message, pem: string = own.ca, atMs = nowMs) => {
    try {
      proveSns(one, pem, atMs)
      return 'proven'
    } catch (error) {
      return (error as Error).message
    }
  }

  test('the signature of an SNS message uses SHA-1 in signature version 1, and SHA-256 in version 2', () => {
    expect([prove(signed('1')), prove(signed('2'))]).toEqual(['proven', 'proven'])
    const wrong = 'Signature: does not fit the message'
    expect(prove(signed('2', { digest: 'RSA-SHA1' }))).toBe(wrong)
    expect(prove(signed('1', { digest: 'RSA-SHA256' }))).toBe(wrong)
  })

  test('the signature of an SNS message is invalid if the message was changed, or if somebody else’s key made the signature', () => {
    const wrong = 'Signature: does not fit the message'
    expect(prove({ ...signed('2'), signedText: `${message.signedText} ` })).toBe(wrong)
    expect(prove({ ...signed('2'), signature: '' })).toBe(wrong)
    const stranger = newRsaCertificate('sns.amazonaws.com')
    expect(prove(signed('2', { key: stranger.key as string }))).toBe(wrong)
  })

  test('the certificate of an SNS message is valid from its first second to its last', () => {
    const { validFrom, validTo } = new X509Certificate(own.ca)
    const [first, last] = [Date.parse(validFrom), Date.parse(validTo)]
    const wrong = 'SigningCertURL: must lead to a valid certificate of sns.amazonaws.com'
    const verdicts = [first - 1, first, last, last + 1].map((atMs) =>
      prove(signed('2'), own.ca, atMs),
    )
    expect(verdicts).toEqual([wrong, 'proven', 'proven', wrong])
  })

  test('the signature of an SNS message needs an RSA certificate of SNS', () => {
    const wrong = 'SigningCertURL: must lead to a valid certificate of sns.amazonaws.com'
    const other = newRsaCertificate('sns.evil.example')
    expect(prove(signed('2', { key: other.key as string }), other.ca)).toBe(wrong)
    expect(prove(signed('2'), newCertificate('sns.amazonaws.com').ca)).toBe(wrong)
    expect(prove(signed('2'), 'no certificate')).toBe('SigningCertURL: leads to no certificate')
  })
})
