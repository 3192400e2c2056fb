import { describe, expect, test } from 'bun:test'
import { isCertificateUrl, isSnsUrl, readSns } from '../../../../shared/mail/http/sns.ts'

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

describe('the service reads an SNS message', () => {
  test('an SNS message is read with the fields that SNS has signed, sorted by their names', () => {
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
    'an SNS message is refused without the field %s, or if the field %s is not a text',
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

  test('an SNS message that confirms a subscription must name the URL for the confirmation', () => {
    const confirmation = { Type: 'SubscriptionConfirmation', Token: 't' }
    const SubscribeURL = 'https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription'
    const { subscribeUrl, signedText } = read({ ...confirmation, SubscribeURL })
    expect(subscribeUrl).toBe(SubscribeURL)
    expect(signedText).toContain(`SubscribeURL\n${SubscribeURL}\nTimestamp\n`)
    expect(signedText).toContain('Token\nt\nTopicArn\n')
    expect(() => read(confirmation)).toThrow('SubscribeURL: must be a text')
  })
})

test('a URL of SNS must have HTTPS, no credentials, and the host of the region', () => {
  const host = 'sns.eu-west-1.amazonaws.com'
  expect(isSnsUrl(`https://${host}/`, 'eu-west-1')).toBe(true)
  expect(isSnsUrl(`https://${host}.cn/`, 'eu-west-1')).toBe(true)
  for (const bad of [
    `http://${host}/`,
    `https://a@${host}/`,
    `https://:b@${host}/`,
    `https://${host}:8443/`,
    `https://${host}.evil.example/`,
    'https://sns.us-east-1.amazonaws.com/',
    'no url',
    `https://${host}/${'x'.repeat(2_000)}`,
  ])
    expect([bad, isSnsUrl(bad, 'eu-west-1')]).toEqual([bad, false])
})

test('the URL of an SNS certificate has a file name that ends with `.pem`, directly below the host', () => {
  const at = (path: string) =>
    isCertificateUrl(`https://sns.eu-west-1.amazonaws.com${path}`, 'eu-west-1')
  expect(at('/SimpleNotificationService-0f.pem')).toBe(true)
  for (const path of ['/a/b.pem', '/.pem', '/a.pem/x', '/a.txt', `/${'a'.repeat(201)}.pem`])
    expect([path, at(path)]).toEqual([path, false])
})
