import type { Logger } from 'pino'
import {
  BlobsAwayError,
  type ObjectStore,
  TooLongError,
} from '../../../shared/blobs/objectStore.ts'
import type { Config } from '../../../shared/config/config.ts'
import { FairTurns } from '../../../shared/fair/fairTurns.ts'
import { readSes } from '../../../shared/mail/http/sesMail.ts'
import { requestId, SignedMailError } from '../../../shared/mail/http/signedMail.ts'
import {
  isCertificateUrl,
  isSnsUrl,
  proveSns,
  readSns,
  type SnsMessage,
} from '../../../shared/mail/http/sns.ts'
import { MESSAGE_MAX_BYTES, SmtpReply, TOO_LARGE } from '../acceptance.ts'
import { inboxSharer } from '../sharers.ts'
import { HttpRefusal } from './httpAnswer.ts'
import { enterLargeMail } from './largeMailTurn.ts'
import { readBody, slices } from './readBody.ts'
import type { ArrivingRequest, HandedMail, HandedReports } from './takeMail.ts'

/**
 * Sets the maximum number of bytes of a message from Amazon SNS, because Amazon SNS sends messages of at most 256 KB.
 */
const JSON_MAX_BYTES = 512 * 1024
/** Limits how many mails from the S3 bucket are in memory at once. */
const OBJECTS_AT_ONCE = 4
const CERTIFICATE_MAX_BYTES = 16 * 1024
const FETCH_MS = 5_000
/**
 * Limits the number of SNS certificates that the service caches, because each region has one certificate, which SNS
 * changes about once a year.
 */
const CERTIFICATES_MAX = 20

/**
 * Requests a certificate from Amazon SNS, or confirms a subscription to an SNS topic. @throws if SNS does not return a
 * text.
 */
export type AskSns = (url: string, maxBytes: number) => Promise<string>

/**
 * Sends requests to Amazon SNS with the given function `fetch`. The caller has already checked that the host belongs to
 * SNS.
 */
export const createAskSns =
  (request: typeof fetch): AskSns =>
  async (url, maxBytes) => {
    const response = await request(url, {
      redirect: 'error',
      signal: AbortSignal.timeout(FETCH_MS),
    })
    if (!response.ok) throw new Error(`SNS answers ${response.status}`)
    return (await readBody(response.body, maxBytes)).toString('utf8')
  }

export type SesParts = {
  settings: NonNullable<NonNullable<Config['smtp']['http']>['ses']>
  /**
   * Holds the S3 bucket in which SES stores large mail. Null means that the SNS notification always contains the mail
   * itself.
   */
  bucket: ObjectStore | null
  ask: AskSns
  log: Logger
}

/**
 * Handles the route `POST /v0/inbound/ses`, which receives notifications of Amazon SES over SNS for the configured
 * topics.
 */
export function createSesAdapter({ settings, bucket, ask, log }: SesParts) {
  const certificates = new Map<string, string>()
  /**
   * Checks the topic and the signature of an SNS message. The function refuses an unknown topic before it fetches the
   * certificate.
   * @throws {SignedMailError} for an unknown topic, or for a wrong certificate or signature.
   */
  const prove = async (message: SnsMessage) => {
    if (!settings.topics.includes(message.topicArn)) {
      throw new SignedMailError(401, 'TopicArn: must be one of INBOUND_SES_TOPICS')
    }
    const [, , , region = ''] = message.topicArn.split(':')
    if (!isCertificateUrl(message.signingCertUrl, region)) {
      throw new SignedMailError(
        401,
        'SigningCertURL: must be a certificate at sns.REGION.amazonaws.com, in the region of the topic',
      )
    }
    const url = message.signingCertUrl
    const pem = certificates.get(url) ?? (await ask(url, CERTIFICATE_MAX_BYTES))
    proveSns(message, pem, Date.now())
    if (certificates.has(url)) return
    // The process caches a certificate only after the certificate has verified the signature of a message. Otherwise a
    // single wrong response of SNS would stay in the cache.
    if (certificates.size >= CERTIFICATES_MAX) certificates.clear()
    certificates.set(url, pem)
  }
  const objects = new FairTurns({ total: OBJECTS_AT_ONCE, perSharer: OBJECTS_AT_ONCE })
  return async (
    request: ArrivingRequest,
    pathname: string,
  ): Promise<HandedMail | HandedReports | null> => {
    if (pathname !== '/v0/inbound/ses') return null
    const message = readSns((await readBody(request.body, JSON_MAX_BYTES)).toString('utf8'))
    await prove(message)
    const key = { secrets: [], domain: null }
    if (message.type !== 'Notification') {
      await answerConfirmation(message)
      return { key, reports: [] }
    }
    const news = readSes(message.message)
    if (news.kind === 'other') return { key, reports: [] }
    if (news.kind === 'reports') return { key, reports: news.reports }
    const { envelope, spf, content } = news
    request.countAs(envelope.to.map(inboxSharer))
    const release =
      'bytes' in content ? () => {} : await enterLargeMail(objects, envelope.to[0] ?? '')
    let bytes: Buffer
    try {
      bytes = 'bytes' in content ? content.bytes : await objectOf(content)
    } catch (error) {
      release()
      throw error
    }
    return {
      ...('bytes' in content ? {} : { release }),
      key,
      envelope,
      provider: { name: 'ses', spf },
      // The message id identifies the delivery, because a message that SNS sends again keeps its id.
      sourceKey: requestId('ses', message.messageId),
      content: slices(bytes),
      check() {},
    }
  }

  async function answerConfirmation({ type, subscribeUrl, topicArn }: SnsMessage): Promise<void> {
    if (type === 'UnsubscribeConfirmation') {
      log.warn({ topicArn }, 'the subscription of mail over HTTP has ended')
      return
    }
    if (!isSnsUrl(subscribeUrl, topicArn.split(':')[3] ?? ''))
      throw new SignedMailError(401, 'SubscribeURL: must be at SNS')
    await ask(subscribeUrl, CERTIFICATE_MAX_BYTES)
    log.info({ topicArn }, 'a subscription of mail over HTTP is confirmed')
  }

  async function objectOf(place: { bucket: string; key: string }): Promise<Buffer> {
    const { bucket: wanted } = settings
    if (
      bucket === null ||
      place.bucket !== wanted?.bucket ||
      !place.key.startsWith(wanted.prefix)
    ) {
      throw new HttpRefusal(400, 'receipt.action: must name an object within INBOUND_SES_BUCKET')
    }
    try {
      const bytes = await bucket.get(place.key.slice(wanted.prefix.length), MESSAGE_MAX_BYTES)
      // The reply 451 makes Amazon SNS try again, because an object that is missing now may still appear. Normally SES
      // writes the object before it sends the notification.
      if (bytes === null) throw new SmtpReply(451, '4.3.0 The object of the message is missing')
      return bytes
    } catch (error) {
      if (error instanceof TooLongError) throw new SmtpReply(552, TOO_LARGE)
      if (!(error instanceof BlobsAwayError)) throw error
      throw new SmtpReply(451, '4.3.0 The object of the message cannot be read now')
    }
  }
}
