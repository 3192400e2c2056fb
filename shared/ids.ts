import { randomBytes } from 'node:crypto'

/**
 * Returns the text `prefix`, followed by `bytes` random bytes in hexadecimal. With 12 random bytes, a duplicate is
 * likely only after about 2^48 generated ids.
 */
function randomId(prefix: string, bytes = 12): string {
  return prefix + randomBytes(bytes).toString('hex')
}

/** Generates the identifier of a project, which the API also returns as `identityId`. */
export const newProjectId = (): string => randomId('prj_')

/** Generates the identifier of a thread, `thd_<hex>`. */
export const newThreadId = (): string => randomId('thd_')

/** Generates the identifier of a seller's endpoint (docs/contract.md §6). */
export const newEndpointId = (): string => randomId('se_')

/**
 * Generates the identifier of a webhook delivery. Receivers recognise a repeated delivery by the id of the webhook
 * delivery.
 */
export const newDeliveryId = (): string => randomId('whd_')

/** Generates a webhook signing secret: `whsec_` and 256 random bits in hexadecimal. */
export const newWebhookSecret = (): string => randomId('whsec_', 32)

/**
 * Generates the identifier of an HTTP request. The header `X-Request-Id` and every log line of the request hold the
 * request's identifier.
 */
export const newRequestId = (): string => randomId('req_')

/**
 * Generates a Message-ID for a message that the service sends (RFC 5322 §3.6.4): 128 random bits at the mail domain, in
 * angle brackets.
 */
export const newMessageId = (domain: string): string => `<${randomId('', 16)}@${domain}>`

/** Generates the identifier of a trial payment, with which an owner tests an endpoint. */
export const newTrialId = (): string => randomId('tri_')

/** Generates the identifier of a credential, `cred_<hex>`. */
export const newCredentialId = (): string => randomId('cred_')

/** Generates the identifier of a payment, which the API also returns as `paymentInId`. */
export const newPaymentId = (): string => randomId('pay_')

/** Generates the identifier of a payment check that waits for a result from the chain. */
export const newCheckId = (): string => randomId('chk_')

/** Generates the identifier of one request that sends a stored secret. */
export const newUseId = (): string => randomId('use_')

/** Generates the identifier of an email rule (docs/contract.md §4). */
export const newRuleId = (): string => randomId('rul_')

/** Generates the identifier of a project's webhook. */
export const newWebhookId = (): string => randomId('wh_')

/** Generates the identifier of a draft. */
export const newDraftId = (): string => randomId('dft_')

/** Generates the identifier of an approval request, which the owner approves or rejects. */
export const newApprovalId = (): string => randomId('apr_')

/** Generates the public identifier of a console session. */
export const newSessionId = (): string => randomId('ses_', 6)

/**
 * Generates the identifier of a registered OAuth client. The following two functions generate the identifiers of an
 * OAuth consent request and of an OAuth grant.
 */
export const newOAuthClientId = (): string => randomId('oac_')
export const newOAuthRequestId = (): string => randomId('oar_')
export const newOAuthGrantId = (): string => randomId('oag_')

/** Generates the identifier of a report of the doctor (the service's self-check). */
export const newHealthReportId = (): string => randomId('hlr_')

/** Generates the identifier of a person who signs in to the console. */
export const newPersonId = (): string => randomId('per_')

/** Generates the identifier of a sign-in at the company's identity provider. */
export const newCompanySignInId = (): string => randomId('csi_')

/** Generates the identifier of a request for a sign-in link by mail. */
export const newSignInMailId = (): string => randomId('sim_')

/** Generates the identifier of a spending mandate. */
export const newMandateId = (): string => randomId('man_')

/** Generates the identifier of a purchase. */
export const newPurchaseId = (): string => randomId('pur_')

/** Generates the identifier of a refund that a seller makes by hand. */
export const newHandRefundId = (): string => randomId('rfd_')
