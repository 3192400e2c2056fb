import { randomBytes } from 'node:crypto'

/** `prefix` and `bytes` random bytes in hexadecimal. With 12 bytes a collision takes about 2^48 rows. */
function randomId(prefix: string, bytes = 12): string {
  return prefix + randomBytes(bytes).toString('hex')
}

/** A project's identifier, also served as `identityId`. */
export const newProjectId = (): string => randomId('prj_')

/** A thread's identifier, `thd_<hex>`. */
export const newThreadId = (): string => randomId('thd_')

/** The identifier of a seller's endpoint (docs/contract.md §6). */
export const newEndpointId = (): string => randomId('se_')

/** The identifier of a webhook delivery. Receivers de-duplicate on it. */
export const newDeliveryId = (): string => randomId('whd_')

/** A webhook signing secret: `whsec_` and 256 random bits in hexadecimal. */
export const newWebhookSecret = (): string => randomId('whsec_', 32)

/** A request's identifier, echoed in `X-Request-Id` and written on every log line of the request. */
export const newRequestId = (): string => randomId('req_')

/** A Message-ID for a message we send (RFC 5322 §3.6.4): 128 random bits at the mail domain, in angle brackets. */
export const newMessageId = (domain: string): string => `<${randomId('', 16)}@${domain}>`

/** The identifier of an endpoint's trial. */
export const newTrialId = (): string => randomId('tri_')

/** A credential's identifier, `cred_<hex>`. */
export const newCredentialId = (): string => randomId('cred_')

/** A payment's identifier, also served as `paymentInId`. */
export const newPaymentId = (): string => randomId('pay_')

/** The identifier of a payment check that waits for the chain. */
export const newCheckId = (): string => randomId('chk_')

/** The identifier of a use of a secret. */
export const newUseId = (): string => randomId('use_')

/** The identifier of an email rule (docs/contract.md §4). */
export const newRuleId = (): string => randomId('rul_')

/** The identifier of a project's webhook. */
export const newWebhookId = (): string => randomId('wh_')

/** The identifier of a draft. */
export const newDraftId = (): string => randomId('dft_')

/** The identifier of a request that an owner decides. */
export const newApprovalId = (): string => randomId('apr_')

/** The public identifier of a console session. */
export const newSessionId = (): string => randomId('ses_', 6)

/** Identifiers of OAuth: a registered client, a request for consent, a grant. */
export const newOAuthClientId = (): string => randomId('oac_')
export const newOAuthRequestId = (): string => randomId('oar_')
export const newOAuthGrantId = (): string => randomId('oag_')

/** The identifier of a report of the doctor. */
export const newHealthReportId = (): string => randomId('hlr_')

/** The identifier of a person who signs in to the console. */
export const newPersonId = (): string => randomId('per_')

/** The identifier of a sign-in at the company's identity provider. */
export const newCompanySignInId = (): string => randomId('csi_')

/** The identifier of a request for a sign-in link by mail. */
export const newSignInMailId = (): string => randomId('sim_')

/** The identifier of a mandate. */
export const newMandateId = (): string => randomId('man_')

/** The identifier of a purchase. */
export const newPurchaseId = (): string => randomId('pur_')

/** The identifier of a refund that a seller makes by hand. */
export const newHandRefundId = (): string => randomId('rfd_')
