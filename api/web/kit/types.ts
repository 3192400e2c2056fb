/** Describes the responses of the service, but only with the fields that the console page uses. */

export type Role = 'viewer' | 'owner' | 'operator'

export type Session = {
  sessionId: string
  person: { personId: string; name: string; email: string | null; role: Role }
  expiresAt: string
  baseUrl: string
  mailDomain: string
  capturesMail: boolean
  network: string | null
}

export type Minute = {
  at: string
  mailIn: number
  mailOut: number
  payments: number
  paidUsdc: string
  webhooksOk: number
  webhooksFailed: number
  jobs: Record<string, number> | null
}

export type Part = Omit<Minute, 'jobs'>

export type Overview = {
  at: string
  /** Holds the statistics for each minute of the last hour. */
  minutes: Minute[]
  /**
   * Holds the statistics for the period that the user chose. All parts of the period have the same length, and the
   * response omits parts without counts.
   */
  history: { range: string; widthMs: number; parts: Part[]; count: number }
  jobs: Record<string, number>
  failedJobs: number
  backlog: {
    outboundMails: number
    verifiedPayments: number
    unfinalizedPayments: number
    pendingDeliveries: number
    openTransactions: number
    workerPools: number
    rpcReportAgeS: number | null
    rpcAnswers: boolean
    headNumber: number | null
  }
}

export type Project = {
  projectId: string
  name: string
  purpose: string
  emailAddress: string
  scopes: string[]
  apiKeyPrefix: string
  payTo: string | null
  paymentsEnabled: boolean
  sendPolicy: 'free' | 'approve' | 'approve-new'
  approverEmail: string | null
  approvalHours: number
  usage: {
    storageBytes: number
    dailySettlements: number
    dailyGas: number
    dailyPurseGas: number
    dailyTextBytes: number
    dailyTextSeconds: number
  }
  /** Holds the project's own limits. A `null` means that the default of the service applies. */
  limits: Record<
    'storageBytes' | 'dailySettlements' | 'dailyGas' | 'dailyTextBytes' | 'dailyTextSeconds',
    number | null
  >
  /** Tells for how many days the service keeps each kind of data. A `null` means for ever. */
  retention: Record<RetentionClass, number | null>
  createdAt: string
}

export type RetentionClass =
  | 'mail'
  | 'rawMail'
  | 'deliveries'
  | 'logs'
  | 'idempotencyKeys'
  | 'paymentDetails'

export type Thread = {
  threadId: string
  subject: string
  messageCount: number
  updatedAt: string
  /** Names the authors of the newest message in the thread. A thread without messages has no field `from`. */
  from?: string[]
  snippet?: string
  unread?: boolean
}

export type Attachment = {
  attachmentId: string
  filename: string
  contentType: string
  size: number
  /** Describes the text that the service read from the attachment of a received mail. Sent mail has no such text. */
  text?: { state: 'pending' | 'ready' | 'none' | 'failed'; reason?: string }
}

/** Describes the first page of an attachment's text. */
export type AttachmentPage = { text: string | null; omitted: string[]; nextOffset?: number }

export type Message = {
  messageId: string
  threadId: string
  from: string[]
  to: string[]
  cc: string[]
  subject: string
  text: string
  extractedText?: string
  labels: string[]
  createdAt: string
  attachments: Attachment[]
  deliveryStatus?: string
  deliveryError?: string | null
  /** Holds the time at which the service sends the message. Only scheduled messages have this field. */
  sendAt?: string
  /** Holds the results of checking the sender of the message. Only received messages have this field. */
  authentication?: Authentication
}

export type Authentication = Record<'spf' | 'dkim' | 'dmarc' | 'arc', string> & {
  internal: boolean
}

/** Describes an excerpt of a text. The field `ranges` gives the UTF-16 offsets of each search match. */
export type Highlight = { text: string; ranges: [start: number, end: number][] }

/** Describes a draft, which is a mail that is still being written. */
export type DraftHead = {
  draftId: string
  to?: string[]
  cc?: string[]
  bcc?: string[]
  subject?: string
  sendAt?: string
  inReplyTo?: string
  replyAll?: boolean
  updatedAt: string
  createdAt: string
}
export type Draft = DraftHead & {
  text?: string
  html?: string
  attachments: { filename: string; contentType: string; size: number }[]
}

/** Describes a calendar invitation in a message. */
export type Invite = {
  method: string
  uid: string
  summary: string
  state: string
  answer: string
  start: { local: string; zone: string | null }
  end: { local: string; zone: string | null }
  recurrence: { rule: string } | null
  location: string | null
  organizer: { address: string } | null
  attendees: { address: string; state: string }[]
}

/** Describes a received message with its invitations, codes and links. */
export type SingleMessage = Message & {
  invites?: Invite[]
  codes?: { value: string; confidence: number; part: string; line: string }[]
  links?: { href: string; text: string; purpose: string; sensitive: boolean }[]
}

export type FoundMessage = Pick<
  Message,
  'messageId' | 'threadId' | 'from' | 'to' | 'subject' | 'text' | 'labels' | 'createdAt'
> & { highlights: { subject: Highlight[]; text: Highlight[] } }

/** Describes a mail that waits for the owner's approval. */
type HeldHead = {
  approvalId: string
  state: 'waiting' | 'approved' | 'rejected' | 'withdrawn' | 'expired'
  requestedAt: string
  expiresAt: string
  decidedBy: string | null
  reason: string | null
}
type HeldMail = Pick<
  Message,
  'messageId' | 'threadId' | 'from' | 'to' | 'cc' | 'subject' | 'text'
> & {
  bcc: string[]
  refused: string[]
  sendAt?: string
}
export type HeldItem = HeldHead & { message: HeldMail | null }
export type HeldRequest = HeldHead & {
  /** Holds the SHA-256 of a mail that waits for approval. Null means that the agent has deleted the mail. */
  sha256: string | null
  message: (HeldMail & { html: string | null; attachments: Attachment[] }) | null
}
export type WholeThread = {
  threadId: string
  subject: string
  totalMessages: number
  messages: Message[]
  withHtml: string[]
}

export type Endpoint = {
  endpointId: string
  urlPattern: string
  priceUsdc: string
  description: string | null
  webhookUrl: string | null
  active: boolean
  verification: { status: string; checkedAt: string | null; detail: string | null }
  callCount: number
  revenueUsdcRaw: string
}

/** Describes the last trial of an endpoint, in which the service called the endpoint like a buyer. */
export type EndpointTrial = {
  canBuy: boolean
  trial: {
    state: 'asking' | 'asked' | 'paying' | 'paid' | 'failed'
    buy: boolean
    challenge: Record<string, unknown> | null
    status: number | null
    body: string | null
    detail: string | null
    createdAt: string
    endedAt: string | null
  } | null
}

export type PaymentItem = {
  id: string
  amountUsdc: string
  status: string
  network: string
  payerAddress: string
  recipientAddress: string
  txHash: string | null
  resourceUrl: string
  failureReason: string | null
  failureMessage: string | null
  latestDelivery: { deliveryId: string; status: string } | null
  createdAt: string
  settledAt: string | null
  signedReceipt: Record<string, unknown> | null
}

type Attempts = { attempts: number }
export type Payment = Omit<PaymentItem, 'latestDelivery'> & {
  failureDetail: string | null
  finalizedAt: string | null
  deliveries: (Record<'deliveryId' | 'event' | 'status' | 'createdAt', string> & Attempts)[]
}

export type Delivery = {
  deliveryId: string
  paymentId: string | null
  event: string
  idempotencyKey: string
  url: string
  status: string
  attemptCount: number
  nextAttemptAt: string | null
  error: string | null
  createdAt: string
}

export type DeliveryCounts = { delivered: number; pending: number; failed: number }
export type DeliveryStats = DeliveryCounts & {
  total: number
  complete: boolean
  failureRate: number | null
  byReceiver: ({ endpointId: string | null; webhookId: string | null } & DeliveryCounts)[]
}

export type WholeDelivery = Delivery & {
  attempts: {
    number: number
    at: string
    status: number | null
    ms: number
    error: string | null
    response: string | null
  }[]
}

export type JobState = 'running' | 'ready' | 'delayed' | 'failed'
export type Job = {
  jobId: string
  task: string
  pool: string | null
  key: string | null
  attempts: number
  maxAttempts: number
  runAt: string
  lockedAt: string | null
  lastError: string | null
}
export type Jobs = { counts: { task: string; state: JobState; count: number }[]; jobs: Job[] }

export type PlatformKey = {
  keyId: string
  prefix: string
  name: string | null
  createdAt: string
  revokedAt: string | null
}

export type EmailRule = {
  id: string
  type: 'ALLOW' | 'BLOCK'
  scope: 'RECEIVE' | 'SEND' | 'REPLY'
  value: string
  createdAt: string
}

export type Suppression = {
  address: string
  reason: 'bounce' | 'rejection' | 'complaint'
  detail: string | null
  createdAt: string
}

export type EventWebhook = { webhookId: string; url: string; events: string[]; createdAt: string }

export type HealthFinding = {
  area: string
  check: string
  found: string
  verdict: 'ok' | 'warning' | 'broken'
  fix: string | null
}

export type ReportedSource = {
  kind: 'dmarc' | 'tls'
  domain: string
  source: string | null
  result: string
  isPassed: boolean
  count: number
  reporters: string[]
}

export type MailReports = {
  days: { date: string; kind: 'dmarc' | 'tls'; passed: number; failed: number }[]
  sources: ReportedSource[]
  unproven: number
}

export type HealthReport = {
  requestedAt: string
  complete: boolean
  findings: HealthFinding[]
}

export type MailDomain = {
  domain: string
  status: string
  records: {
    purpose: string
    type: string
    name: string
    value: string
    priority: number | null
    required: boolean
    status: string
    detail: string | null
  }[]
  createdAt: string
  checkedAt: string | null
  verifiedAt: string | null
}

export type LogEntry = {
  id: string
  action: string
  subject: string | null
  description: string | null
  actor: string
  outcome: string
  createdAt: string
}

export type Page<Name extends string, Item> = Record<Name, Item[]> & { nextPageToken?: string }
