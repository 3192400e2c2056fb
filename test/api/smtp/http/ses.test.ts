import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSign } from 'node:crypto'
import { createAskSns } from '../../../../api/smtp/http/ses.ts'
import { type Bucket, startBucket } from '../../../support/database/bucket.ts'
import { copiesAt, sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { handOver, INBOUND_ENV } from '../../../support/mail/signedMail.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { newCertificate, newRsaCertificate } from '../../../support/process/tlsServer.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:mail'
const CERTIFICATE_URL = 'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem'
const own = newRsaCertificate('sns.amazonaws.com')
/** Maps each URL to the response of the fake Amazon SNS. */
const answers = new Map([
  [CERTIFICATE_URL, own.ca],
  ['https://sns.eu-west-1.amazonaws.com/other.pem', newRsaCertificate('sns.evil.example').ca],
  ['https://sns.eu-west-1.amazonaws.com/ec.pem', newCertificate('sns.amazonaws.com').ca],
  ['https://sns.eu-west-1.amazonaws.com/text.pem', 'no certificate'],
])
let asked: string[] = []

let service: TestService
let sink: Sink
let bucket: Bucket
let agent: Agent
beforeAll(async () => {
  ;[sink, bucket] = await Promise.all([startSink(), startBucket()])
  service = await startTestService({
    env: {
      ...INBOUND_ENV,
      SMTP_RELAY_URL: sink.url,
      INBOUND_SES_TOPICS: TOPIC,
      INBOUND_SES_BUCKET: bucket.env.BLOB_STORE,
      S3_ACCESS_KEY_ID: bucket.env.S3_ACCESS_KEY_ID,
      S3_SECRET_ACCESS_KEY: bucket.env.S3_SECRET_ACCESS_KEY,
    },
    askSns: async (url) => {
      asked.push(url)
      const answer = answers.get(url)
      if (answer === undefined) throw new Error('nobody answers')
      return answer
    },
  })
  agent = await service.newAgent()
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
  await bucket[Symbol.asyncDispose]()
})

type Fields = Record<string, string>
let messages = 0

/**
 * Creates a signed SNS message as SNS does. The fields in `after` are changed after the signing, so the signature
 * becomes wrong.
 */
function sns(
  message: unknown,
  {
    type = 'Notification',
    version = '2',
    key = own.key,
    fields = {},
    after = {},
  }: {
    type?: string
    version?: string
    key?: string
    fields?: Fields
    after?: Fields
  } = {},
): string {
  const isConfirmation = type !== 'Notification'
  const body: Fields = {
    Type: type,
    MessageId: `00000000-0000-0000-0000-${String(++messages).padStart(12, '0')}`,
    TopicArn: TOPIC,
    Message: typeof message === 'string' ? message : JSON.stringify(message),
    Timestamp: '2026-01-05T09:30:00.000Z',
    SignatureVersion: version,
    SigningCertURL: CERTIFICATE_URL,
    ...(isConfirmation
      ? { Token: 'token', SubscribeURL: 'https://sns.eu-west-1.amazonaws.com/?Action=Confirm' }
      : {}),
    ...fields,
  }
  const names = isConfirmation
    ? ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
    : ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
  const text = names
    .filter((name) => body[name] !== undefined)
    .map((name) => `${name}\n${body[name]}\n`)
    .join('')
  const Signature = createSign(version === '2' ? 'RSA-SHA256' : 'RSA-SHA1')
    .update(text)
    .sign(key, 'base64')
  return JSON.stringify({ ...body, Signature, ...after })
}
const post = (body: string) =>
  handOver(
    service.smtp!.httpPort!,
    { method: 'POST', body, headers: { 'content-type': 'text/plain' } },
    '/v0/inbound/ses',
  )

const mailOf = (id: string) =>
  Buffer.from(
    `Message-ID: <${id}@example.com>\r\nFrom: ada@example.com\r\nSubject: ${id}\r\n\r\nGr\xfc\xdfe\r\n`,
    'latin1',
  )
const received = (id: string, action: object = { type: 'SNS', encoding: 'BASE64' }) => ({
  notificationType: 'Received',
  mail: { source: 'ada@example.com', messageId: 'x' },
  receipt: {
    recipients: [agent.address],
    spfVerdict: { status: 'PASS' },
    action,
  },
  content: mailOf(id).toString('base64'),
})

test('a mail in an Amazon SES notification arrives once, byte for byte, and the SPF result of SES is stored separately', async () => {
  const body = sns(received('inline'), { fields: { Subject: 'Amazon SES' } })
  expect((await post(body)).status).toBe(200)
  expect((await post(body)).status).toBe(200)
  expect((await post(sns(received('later'), { version: '1' }))).status).toBe(200)
  expect(await waitForMessages(agent, 2)).toHaveLength(2)
  const path = messagePath('<inline@example.com>')
  const { body: message } = await agent.get(path)
  expect(message.authentication).toMatchObject({ spf: 'none', providerSpf: 'pass' })
  const raw = await fetch(`${service.url}${path}/raw`, {
    headers: { authorization: `Bearer ${agent.key}` },
  })
  expect(Buffer.from(await raw.arrayBuffer()).equals(mailOf('inline'))).toBe(true)
})

test('SES mail is read from its S3 bucket; a missing object or unreachable bucket gives 503, and an unknown bucket gives 400', async () => {
  const action = (objectKey: string, bucketName = 'mail') => ({ type: 'S3', bucketName, objectKey })
  await bucket.store.put('large', mailOf('stored'))
  expect((await post(sns(received('', action('purser/large'))))).status).toBe(200)
  const found = async () => (await agent.get(messagePath('<stored@example.com>'))).status === 200
  await waitFor('the stored mail', found)
  const missing = await post(sns(received('', action('purser/missing'))))
  expect([missing.status, JSON.stringify(missing.body)]).toEqual([
    503,
    expect.stringContaining('The object of the message is missing'),
  ])
  for (const wrong of [action('other/large'), action('purser/large', 'secrets')]) {
    expect((await post(sns(received('', wrong)))).status).toBe(400)
  }
  await bucket.store.put('huge', Buffer.alloc(35 * 1024 * 1024 + 1))
  expect((await post(sns(received('', action('purser/huge'))))).status).toBe(413)
  await bucket.proxy.cut()
  const away = await post(sns(received('', action('purser/large'))))
  expect([away.status, away.headers.get('retry-after')]).toEqual([503, '30'])
  await bucket.proxy.mend()
})

test('an SES notification without a valid SNS signature is refused, and no mail is fetched for an unknown SNS topic', async () => {
  const stranger = newRsaCertificate('sns.amazonaws.com')
  const forged: [what: string, body: string, status: number][] = [
    ['another key', sns(received('a'), { key: stranger.key }), 401],
    ['a changed message', sns(received('b'), { after: { Message: '{}' } }), 401],
    [
      'a changed type',
      sns('x', {
        after: { Type: 'UnsubscribeConfirmation', Token: 't', SubscribeURL: CERTIFICATE_URL },
      }),
      401,
    ],
    [
      'a certificate of another name',
      sns(received('c'), {
        fields: { SigningCertURL: 'https://sns.eu-west-1.amazonaws.com/other.pem' },
      }),
      401,
    ],
    [
      'a certificate without RSA',
      sns(received('d'), {
        fields: { SigningCertURL: 'https://sns.eu-west-1.amazonaws.com/ec.pem' },
      }),
      401,
    ],
    [
      'no certificate',
      sns(received('e'), {
        fields: { SigningCertURL: 'https://sns.eu-west-1.amazonaws.com/text.pem' },
      }),
      401,
    ],
    ['no JSON', 'text', 400],
    ['no fields', '{}', 400],
    ['a list', '[]', 400],
    ['version 3', sns('x', { after: { SignatureVersion: '3' } }), 400],
  ]
  for (const [what, body, status] of forged) {
    const answer = await post(body)
    expect([what, answer.status]).toEqual([what, status])
  }
  asked = []
  for (const SigningCertURL of [
    'https://sns.eu-west-1.amazonaws.com.evil.example/x.pem',
    'https://evil.example/sns.eu-west-1.amazonaws.com/x.pem',
    'http://sns.eu-west-1.amazonaws.com/x.pem',
    'https://sns.eu-west-1.amazonaws.com:8443/x.pem',
    'https://me@sns.eu-west-1.amazonaws.com/x.pem',
    'https://sns.eu-west-1.amazonaws.com/?x.pem',
    'https://169.254.169.254/x.pem',
    'https://sns.eu-west-2.amazonaws.com/x.pem',
    'https://s3.amazonaws.com/x.pem',
  ]) {
    const { status } = await post(sns(received('f'), { fields: { SigningCertURL } }))
    expect([SigningCertURL, status]).toEqual([SigningCertURL, 401])
  }
  const TopicArn = 'arn:aws:sns:eu-west-1:999999999999:mail'
  const SigningCertURL = 'https://sns.eu-west-1.amazonaws.com/new.pem'
  expect((await post(sns(received('g'), { fields: { TopicArn, SigningCertURL } }))).status).toBe(
    401,
  )
  const confirm = sns('x', {
    type: 'SubscriptionConfirmation',
    fields: { TopicArn, SigningCertURL },
  })
  expect((await post(confirm)).status).toBe(401)
  expect(asked).toEqual([])
})

test('the service confirms an SNS subscription only if its URL belongs to SNS', async () => {
  const SubscribeURL = 'https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t'
  answers.set(SubscribeURL, '<ConfirmSubscriptionResponse/>')
  asked = []
  const confirm = (fields: Fields) => post(sns('x', { type: 'SubscriptionConfirmation', fields }))
  expect((await confirm({ SubscribeURL })).status).toBe(200)
  expect(asked.at(-1)).toBe(SubscribeURL)
  asked = []
  expect((await confirm({ SubscribeURL: 'https://evil.example/?Action=Confirm' })).status).toBe(401)
  expect(asked).toEqual([])
  expect((await post(sns('x', { type: 'UnsubscribeConfirmation' }))).status).toBe(200)
})

test('while the certificate of SNS cannot be fetched, a notification gets status 503, so that no mail is lost', async () => {
  const SigningCertURL = 'https://sns.eu-west-1.amazonaws.com/away.pem'
  const body = sns(received('away'), { fields: { SigningCertURL } })
  expect((await post(body)).status).toBe(503)
  answers.set(SigningCertURL, own.ca)
  expect((await post(body)).status).toBe(200)
})

test('if the certificate URL of SNS returns something other than a certificate, the service does not keep this response, and fetches the URL again later', async () => {
  const SigningCertURL = 'https://sns.eu-west-1.amazonaws.com/late.pem'
  const body = sns(received('late'), { fields: { SigningCertURL } })
  answers.set(SigningCertURL, 'Please come again.')
  expect((await post(body)).status).toBe(401)
  answers.set(SigningCertURL, own.ca)
  expect((await post(body)).status).toBe(200)
})

test('a notification that is neither a mail nor a bounce is accepted without effect', async () => {
  const { status, body } = await post(sns({ notificationType: 'Delivery', mail: { source: 'a' } }))
  expect([status, body]).toEqual([200, { recorded: false }])
})

test('only the exact path for SES receives mail, and a longer path gets status 404', async () => {
  const request = { method: 'POST', body: sns({ notificationType: 'Received' }) }
  const { status } = await handOver(service.smtp!.httpPort!, request, '/v0/inbound/ses2')
  expect(status).toBe(404)
})

test('if Amazon SNS responds with an error page instead of its certificate, the service reports an error', async () => {
  const page = async () => new Response('a page', { status: 502 })
  const asked = createAskSns(page as unknown as typeof fetch)('https://sns.test/x.pem', 100)
  expect(await asked.catch(String)).toBe('Error: SNS answers 502')
})

test('an SES notification is refused if its SES rule does not use Base64 for mail, because other encodings change bytes', async () => {
  const { status, body } = await post(sns(received('utf8', { type: 'SNS', encoding: 'UTF8' })))
  expect([status, body.message]).toEqual([
    400,
    'receipt.action.encoding: must be Base64; set it in the rule of SES',
  ])
})

test('a bounce or complaint that SES reports affects only the sent mail that it names', async () => {
  const suppressed = async (one: Agent) =>
    (await one.get('/v0/suppressions')).body.suppressions.map(({ address, reason }: any) => [
      address,
      reason,
    ])
  const sender = await service.newAgent()
  const sent = async (to: string) => {
    const { messageId } = await sendMail(sender, { to: [to] })
    const copy = (await copiesAt(sink, messageId, [to])).get(to)!
    await untilStatus(sender, messageId, 'sent')
    return { messageId, id: copy.id }
  }
  const bounced = await sent('gone@example.com')
  const bounce = (bounceType: string) => ({
    notificationType: 'Bounce',
    mail: { messageId: bounced.id, source: sender.address },
    bounce: {
      bounceType,
      bouncedRecipients: [
        { emailAddress: 'gone@example.com', status: '5.1.1', diagnosticCode: 'smtp; 550 unknown' },
      ],
    },
  })
  expect((await post(sns(bounce('Transient')))).body).toEqual({ recorded: false })
  expect((await post(sns(bounce('Permanent')))).body).toEqual({ recorded: true })
  await untilStatus(sender, bounced.messageId, 'bounced')

  const complained = await sent('ada@example.com')
  const complaint = (complaintFeedbackType: string, others: string[] = []) => ({
    eventType: 'Complaint',
    mail: { messageId: complained.id, source: sender.address },
    complaint: {
      complaintFeedbackType,
      complainedRecipients: ['ada@example.com', ...others].map((emailAddress) => ({
        emailAddress,
      })),
    },
  })
  expect((await post(sns(complaint('not-spam')))).body).toEqual({ recorded: false })
  expect((await post(sns(complaint('abuse', ['eve@example.com'])))).body).toEqual({
    recorded: false,
  })
  expect((await post(sns(complaint('abuse')))).body).toEqual({ recorded: true })
  expect(await suppressed(sender)).toEqual([
    ['ada@example.com', 'complaint'],
    ['gone@example.com', 'bounce'],
  ])
})
