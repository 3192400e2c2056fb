/** Names the tables and columns that a project's export contains. No section contains a secret. */
import { currentAttachments } from '../../mail/messages/describedTexts.ts'

/** Describes the rows of one kind in a project's export. */
export type Section = {
  kind: string
  /**
   * Holds the SQL text after `from`: the table of the export's section with the alias `x`, and the joins of the
   * section.
   */
  from: string
  /**
   * Names the column by which the export orders the rows of a section. If several rows have the same value in the
   * column `age`, the export orders these rows by their row number.
   */
  age: string
  /** Maps each field of an exported row to an SQL expression. */
  fields: Readonly<Record<string, string>>
  condition?: string
  /** Holds the maximum number of rows that one query reads from a section of the export. */
  page?: number
}

/** Lists the sections of an export in their order, except the messages. */
export const SECTIONS: readonly Section[] = [
  {
    kind: 'thread',
    from: 'threads x',
    age: 'updated_at',
    fields: {
      threadId: 'x.id',
      subject: 'x.subject',
      messageCount: 'x.message_count',
      createdAt: 'x.created_at',
      updatedAt: 'x.updated_at',
    },
  },
  {
    kind: 'credential',
    // The export of credentials leaves out ciphertexts and data keys, because the holder of a platform key must never
    // get a secret.
    from: `credentials x join lateral (
      select json_agg(json_build_object('version', v.version, 'type', v.type, 'metadata', v.metadata,
        'allowedHosts', v.allowed_hosts, 'allowedMethods', v.allowed_methods, 'allowedPaths', v.allowed_paths,
        'placement', v.placement, 'expiresAt', v.expires_at, 'createdAt', v.created_at)
        order by v.version) as list
      from credential_versions v where v.credential_row = x.row) versions on true`,
    // Ten versions of a credential can have half a megabyte of metadata and bounds.
    page: 20,
    age: 'created_at',
    fields: {
      credentialId: 'x.id',
      name: 'x.name',
      version: 'x.version',
      reveal: 'x.reveal',
      versions: 'versions.list',
      createdAt: 'x.created_at',
      lastUsedAt: 'x.last_used_at',
      lastRotatedAt: 'x.last_rotated_at',
    },
  },
  {
    kind: 'emailRule',
    from: 'email_rules x',
    age: 'created_at',
    fields: {
      ruleId: 'x.id',
      type: 'x.type',
      scope: 'x.scope',
      value: 'x.value',
      createdAt: 'x.created_at',
    },
  },
  {
    kind: 'suppression',
    from: 'suppressions x',
    age: 'created_at',
    fields: {
      address: 'x.address',
      reason: 'x.reason',
      detail: 'x.detail',
      messageId: 'x.message_id',
      createdAt: 'x.created_at',
    },
  },
  {
    kind: 'draft',
    from: 'drafts x',
    age: 'created_at',
    // Each query reads only one draft, because all drafts of a project together may have 100 MB.
    page: 1,
    fields: {
      draftId: 'x.id',
      version: 'x.version',
      content: 'x.content',
      attachments: 'x.attachments',
      createdAt: 'x.created_at',
      updatedAt: 'x.updated_at',
    },
  },
  {
    kind: 'event',
    from: 'calendar_events x',
    age: 'updated_at',
    fields: {
      invite: 'x.invite',
      status: 'x.status',
      answer: 'x.answer',
      isOwn: 'x.is_own',
      isProven: 'x.is_proven',
      updatedAt: 'x.updated_at',
    },
  },
  {
    kind: 'approval',
    from: 'approvals x',
    age: 'requested_at',
    fields: {
      approvalId: 'x.id',
      of: 'x.kind',
      messageId: 'x.subject',
      state: 'x.state',
      reason: 'x.reason',
      decidedBy: 'x.decided_by',
      requestedAt: 'x.requested_at',
      expiresAt: 'x.expires_at',
      decidedAt: 'x.decided_at',
    },
  },
  {
    kind: 'endpoint',
    from: 'seller_endpoints x',
    age: 'created_at',
    fields: {
      endpointId: 'x.id',
      urlPattern: 'x.url_pattern',
      priceAtomic: 'x.price_atomic',
      network: 'x.network',
      description: 'x.description',
      webhookUrl: 'x.webhook_url',
      createdAt: 'x.created_at',
      deletedAt: 'x.deleted_at',
    },
  },
  {
    kind: 'payment',
    from: 'payments x',
    age: 'created_at',
    fields: {
      paymentId: 'x.id',
      endpointId: 'x.endpoint_id',
      resourceUrl: 'x.resource_url',
      description: 'x.description',
      network: 'x.network',
      asset: 'x.asset',
      payer: 'x.payer',
      recipient: 'x.recipient',
      amountAtomic: 'x.amount_atomic',
      authorizationNonce: 'x.authorization_nonce',
      paymentIdentifier: 'x.payment_identifier',
      state: 'x.state',
      failureReason: 'x.failure_reason',
      txHash: 'x.tx_hash',
      signedReceipt: 'x.signed_receipt',
      createdAt: 'x.created_at',
      settledAt: 'x.settled_at',
      finalizedAt: 'x.finalized_at',
      detailsRemovedAt: 'x.details_removed_at',
    },
  },
  {
    kind: 'refund',
    from: 'hand_refunds x',
    age: 'created_at',
    fields: {
      refundId: 'x.id',
      paymentId: 'x.payment_id',
      state: 'x.state',
      reason: 'x.reason',
      network: 'x.network',
      asset: 'x.asset',
      payer: 'x.payer',
      payTo: 'x.pay_to',
      amountAtomic: 'x.amount_atomic',
      txHash: 'x.tx_hash',
      receipt: 'x.receipt',
      createdBy: 'x.created_by',
      createdAt: 'x.created_at',
      spentAt: 'x.spent_at',
      finalAt: 'x.final_at',
    },
  },
  {
    kind: 'mandate',
    from: 'mandates x',
    age: 'created_at',
    fields: {
      mandateId: 'x.id',
      name: 'x.name',
      task: 'x.task',
      network: 'x.network',
      hosts: 'x.hosts',
      resources: 'x.resources',
      payees: 'x.payees',
      perPaymentAtomic: 'x.per_payment_atomic',
      perHourAtomic: 'x.per_hour_atomic',
      perDayAtomic: 'x.per_day_atomic',
      perMonthAtomic: 'x.per_month_atomic',
      totalAtomic: 'x.total_atomic',
      paymentsPerMinute: 'x.payments_per_minute',
      askAboveAtomic: 'x.ask_above_atomic',
      risePercent: 'x.rise_percent',
      validFrom: 'x.valid_from',
      validUntil: 'x.valid_until',
      state: 'x.state',
      reservedAtomic: 'x.reserved_atomic',
      spentAtomic: 'x.spent_atomic',
      releasedAtomic: 'x.released_atomic',
      createdBy: 'x.created_by',
      createdAt: 'x.created_at',
      changedAt: 'x.changed_at',
    },
  },
  {
    kind: 'purchase',
    // The export of purchases leaves out the encrypted request and answer, and all signatures that could move money.
    from: 'purchases x',
    age: 'created_at',
    fields: {
      purchaseId: 'x.id',
      of: 'x.kind',
      state: 'x.state',
      reason: 'x.reason',
      detail: 'x.detail',
      method: 'x.method',
      host: 'x.host',
      path: 'x.path',
      maxAtomic: 'x.max_atomic',
      why: 'x.why',
      askedBy: 'x.asked_by',
      status: 'x.status',
      network: 'x.network',
      asset: 'x.asset',
      payer: 'x.payer',
      payTo: 'x.pay_to',
      amountAtomic: 'x.amount_atomic',
      resource: 'x.resource',
      description: 'x.description',
      money: 'x.money',
      txHash: 'x.tx_hash',
      refundOf: 'x.refund_of',
      sellerReceipt: 'x.seller_receipt',
      receipt: 'x.receipt',
      createdAt: 'x.created_at',
      endedAt: 'x.ended_at',
      spentAt: 'x.spent_at',
      finalAt: 'x.final_at',
    },
  },
  {
    kind: 'webhook',
    from: 'project_webhooks x',
    age: 'created_at',
    condition: 'and x.deleted_at is null',
    fields: { webhookId: 'x.id', url: 'x.url', events: 'x.events', createdAt: 'x.created_at' },
  },
  {
    kind: 'delivery',
    from: `webhook_deliveries x left join lateral (
      select json_agg(json_build_object('number', a.n, 'startedAt', a.started_at, 'statusCode', a.status_code,
        'error', a.error) order by a.n) as list
      from (select * from webhook_attempts where delivery_id = x.id order by n desc limit 100) a) attempts on true`,
    age: 'created_at',
    fields: {
      deliveryId: 'x.id',
      endpointId: 'x.endpoint_id',
      webhookId: 'x.webhook_id',
      subjectId: 'x.subject_id',
      event: 'x.event',
      url: 'x.url',
      status: 'x.status',
      attempts: `coalesce(attempts.list, '[]')`,
      createdAt: 'x.created_at',
    },
  },
  {
    kind: 'log',
    from: 'audit_log x',
    age: 'at',
    fields: {
      action: 'x.action',
      subject: 'x.subject',
      detail: 'x.detail',
      actor: 'x.actor',
      requestId: 'x.request_id',
      outcome: 'x.outcome',
      createdAt: 'x.at',
    },
  },
]

/** Describes the first section of an export. */
export const MESSAGES: Section = {
  kind: 'message',
  from: 'messages x join threads t on t.row = x.thread_row',
  age: 'created_at',
  fields: {
    messageId: 'x.message_id',
    threadId: 't.id',
    direction: 'x.direction',
    from: 'x.from_addresses',
    to: 'x.to_addresses',
    cc: 'x.cc_addresses',
    bcc: 'x.bcc_addresses',
    replyTo: 'x.reply_to_addresses',
    inReplyTo: 'x.in_reply_to',
    references: 'x.reference_ids',
    subject: 'x.subject',
    text: 'x.text_body',
    html: 'x.html_body',
    attachments: currentAttachments('x'),
    labels: 'x.labels',
    deliveryStatus: 'x.delivery_status',
    deliveryError: 'x.delivery_error',
    sendAt: 'x.send_at',
    authentication: 'x.authentication',
    originalIsKept: 'x.raw_id is not null',
    createdAt: 'x.created_at',
  },
}
