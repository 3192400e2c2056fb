import type { ApprovalTokens } from '../shared/approvalLink.ts'
import type { ObjectStore } from '../shared/blobs/objectStore.ts'
import type { Config } from '../shared/config/config.ts'
import type { BounceKeys } from '../shared/mail/compose/bounceAddress.ts'
import type { SignInTokens } from '../shared/people/signInLink.ts'
import type { RunnerName } from '../shared/tasks.ts'
import { createBlobs } from '../sql/blobs/blobs.ts'
import { nextDeliveryInMs } from '../sql/events/deliveries.ts'
import type { KeyringSource } from '../sql/keyring/keyring.ts'
import type { TextLimits } from '../sql/mail/messages/pendingTexts.ts'
import { nextMailInMs } from '../sql/mail/outbound/outboundMails.ts'
import { createMailSignInLink } from './account/mailSignInLink.ts'
import { createReadClientDocument } from './account/readClientDocument.ts'
import { type CompanyOptions, createSignInCompany } from './account/signInCompany.ts'
import { createDeliverWebhook } from './events/deliverWebhook.ts'
import type { OutboundPolicy } from './http/guardedRequest.ts'
import { createAnnounceApproval, createExpireApproval } from './mail/announceApproval.ts'
import type { Dns } from './mail/dns.ts'
import { createExpandEvents } from './mail/inbound/expandEvents.ts'
import { createIndexSearch } from './mail/inbound/indexSearch.ts'
import { createParseInbound } from './mail/inbound/parseInbound.ts'
import { createReadAttachments } from './mail/inbound/readAttachments.ts'
import { createReadReport } from './mail/inbound/readReport.ts'
import type { LookUp } from './mail/lookUp.ts'
import { createSendMail } from './mail/outbound/sendMail.ts'
import type { Transport } from './mail/outbound/transport.ts'
import { createVerifyDomain } from './mail/verifyDomain.ts'
import {
  createExamineChain,
  createExamineMail,
  createExamineService,
  type ExamineOptions,
} from './operations/doctor/examine.ts'
import { createPurgeProject } from './operations/purgeProject.ts'
import { createBuy } from './purse/buy.ts'
import { createPayOut } from './purse/payOut.ts'
import { MAIL_LIMITS } from './queue/lanes.ts'
import type { PoolSettings } from './queue/runner.ts'
import { RUNNER_CONNECTIONS } from './queue/runnerConnections.ts'
import { createSettlePayment } from './till/settle/settlePayment.ts'
import type { Till } from './till/till.ts'
import { createCheckPayment } from './till/trial/checkPayment.ts'
import { createTryEndpoint } from './till/tryEndpoint.ts'
import { createVerifyEndpoint } from './till/verifyEndpoint.ts'
import { createUseSecret } from './vault/useSecret.ts'

type Runner<Name extends RunnerName> = Omit<PoolSettings, 'databaseUrl'> & { name: Name }

/** Jobs of inbound mail, and inbound mails, at the same time. */
const INBOUND_SLOTS = 200

/** What reading attachments may cost a project in a day, by the settings. */
export const textLimits = ({ limits }: Pick<Config, 'limits'>): TextLimits => ({
  bytes: limits.dailyTextBytes,
  cpuSeconds: limits.dailyTextSeconds,
})

/** Parses mail, checks mail domains and removes deleted projects. */
export const inboundRunner = (options: {
  mailDomain: string
  mailHostname: string
  dns: Dns
  lookUp: LookUp
  bounceKeys: BounceKeys
  /** Null: all contents of mail stay in the database. */
  objectStore: ObjectStore | null
  /** The inbox that stands in for the postmaster and for reports. */
  postmaster?: string | undefined
  /** What reading attachments may cost a project in a day. */
  textLimits?: TextLimits
}): Runner<'inbound'> => ({
  name: 'inbound',
  tasks: (context) => {
    const stores = { ...options, blobs: createBlobs(context.pool, options.objectStore) }
    return {
      ...createParseInbound(context, { ...stores, slots: INBOUND_SLOTS }),
      read_report: createReadReport(context, stores),
      read_attachments: createReadAttachments(context, stores),
      index_search: createIndexSearch(context),
      expand_events: createExpandEvents(context),
      purge_project: createPurgeProject(context),
      verify_domain: createVerifyDomain(context, options),
    }
  },
  // A mail that found its share in use comes back after 250 ms.
  pollIntervalMs: 250,
  // A job waits for DNS answers most of its time.
  concurrency: INBOUND_SLOTS,
  connections: RUNNER_CONNECTIONS.inbound,
})

/** Sends mail, announces mail that waits for its owner, and looks at mail for the doctor. */
export const outboundRunner = (
  options: {
    mailDomain: string
    baseUrl: string
    approvalTokens: ApprovalTokens
    signInTokens: SignInTokens
    transport: Transport
    keyring: KeyringSource
    bounceKeys: BounceKeys
    objectStore: ObjectStore | null
  } & ExamineOptions,
): Runner<'outbound'> => ({
  name: 'outbound',
  tasks: (context) => {
    const stores = { ...options, blobs: createBlobs(context.pool, options.objectStore) }
    return {
      send_mail: createSendMail(context, stores),
      announce_approval: createAnnounceApproval(context, stores),
      expire_approval: createExpireApproval(context),
      mail_sign_in_link: createMailSignInLink(context, options),
      examine_mail: createExamineMail(context, options),
    }
  },
  pollIntervalMs: 1_000,
  // A job waits for the remote host most of its time.
  concurrency: 32,
  connections: RUNNER_CONNECTIONS.outbound,
  lanes: MAIL_LIMITS,
  // A scheduled mail leaves at its time.
  nextInMs: nextMailInMs,
})

type OutboundHttp = {
  keyring: KeyringSource
  /** `ca`: further certificate authorities, PEM. */
  policy: OutboundPolicy & { ca?: string }
}

/** Delivers webhooks, asks the company's identity provider, verifies and tries endpoints, and looks at the service for the doctor. */
export const webhooksRunner = (
  options: OutboundHttp & CompanyOptions & ExamineOptions,
): Runner<'webhooks'> => ({
  name: 'webhooks',
  tasks: (context) => ({
    deliver_webhook: createDeliverWebhook(context, options),
    verify_endpoint: createVerifyEndpoint(context, options.policy),
    try_endpoint: createTryEndpoint(context, options.policy),
    read_client_document: createReadClientDocument(context, options.policy),
    sign_in_company: createSignInCompany(context, options),
    examine_service: createExamineService(context, options),
  }),
  pollIntervalMs: 500,
  // A job waits for its receiver most of its time and needs the database for a few milliseconds.
  concurrency: 200,
  connections: RUNNER_CONNECTIONS.webhooks,
  nextInMs: nextDeliveryInMs,
})

/** Sends requests with a secret. */
export const vaultRunner = (options: OutboundHttp): Runner<'vault'> => ({
  name: 'vault',
  tasks: (context) => ({ use_secret: createUseSecret(context, options) }),
  pollIntervalMs: 500,
  // A job waits for the server, and for its turn to be masked, most of its time.
  concurrency: 50,
  connections: RUNNER_CONNECTIONS.vault,
})

/** Buys for agents. */
export const purseRunner = (
  options: OutboundHttp & { deniedPayees: ReadonlySet<string> },
): Runner<'purse'> => ({
  name: 'purse',
  tasks: (context) => ({
    buy: createBuy(context, options),
    pay_out: createPayOut(context, options),
  }),
  pollIntervalMs: 500,
  // A job waits for a seller that settles on the chain.
  concurrency: 100,
  connections: RUNNER_CONNECTIONS.purse,
})

/** Checks and settles payments, and looks at the chain for the doctor. */
export const paymentsRunner = (till: Till, options: ExamineOptions): Runner<'payments'> => ({
  name: 'payments',
  tasks: (context) => ({
    settle_payment: createSettlePayment(till),
    check_payment: createCheckPayment(till),
    examine_chain: createExamineChain(context, options),
  }),
  pollIntervalMs: 200,
  // Jobs that run together are simulated, signed and sent together; they share the till's connections.
  concurrency: 32,
  connections: RUNNER_CONNECTIONS.payments,
})
