import { z } from 'zod'
import { isDomain } from './mail/address.ts'

/** Matches a row number as a decimal string, because JSON numbers are exact only up to 2^53. */
const rowId = z.string().regex(/^[1-9]\d{0,18}$/)

const reportId = z.string().regex(/^hlr_[0-9a-f]{24}$/)

/** Sets the maximum number of inbound mails in one `parse_batch` job. */
export const PARSE_BATCH_MAX = 32

/**
 * Lists every task of the service with the payload of its jobs. The payload of a job holds only identifiers. It never
 * holds mail, secrets or amounts of money, because the service logs, retries and replaces jobs.
 */
export const taskPayloads = {
  // The field `unsureSince` is the time of the first check of the sender for which DNS gave no answer.
  parse_inbound: z.strictObject({ inboundId: rowId, unsureSince: z.iso.datetime().optional() }),
  parse_batch: z.strictObject({ inboundIds: z.array(rowId).min(1).max(PARSE_BATCH_MAX) }),
  send_mail: z.strictObject({ messageRow: rowId }),
  announce_approval: z.strictObject({ approvalId: z.string().regex(/^apr_[0-9a-f]{24}$/) }),
  expire_approval: z.strictObject({ approvalId: z.string().regex(/^apr_[0-9a-f]{24}$/) }),
  mail_sign_in_link: z.strictObject({ requestId: z.string().regex(/^sim_[0-9a-f]{24}$/) }),
  read_report: z.strictObject({ messageRow: rowId }),
  // The field `messageRow` names a message whose attachments are already read, but whose search words may lack the
  // texts of the attachments.
  read_attachments: z.strictObject({
    projectId: z.string().regex(/^prj_[0-9a-f]{24}$/),
    messageRow: rowId.optional(),
  }),
  index_search: z.strictObject({ projectId: z.string().regex(/^prj_[0-9a-f]{24}$/) }),
  expand_events: z.strictObject({ projectId: z.string().regex(/^prj_[0-9a-f]{24}$/) }),
  verify_domain: z.strictObject({ domain: z.string().refine(isDomain) }),
  verify_endpoint: z.strictObject({ endpointId: z.string().regex(/^se_[0-9a-f]{24}$/) }),
  try_endpoint: z.strictObject({ trialId: z.string().regex(/^tri_[0-9a-f]{24}$/) }),
  // The field `attempt` is the number of the webhook delivery attempt that the job makes. If the field is undefined,
  // the job makes the first attempt. A job is outdated if the next attempt of its delivery has another number.
  deliver_webhook: z.strictObject({
    deliveryId: z.string().regex(/^whd_[0-9a-f]{24}$/),
    attempt: z.int().positive().optional(),
  }),
  settle_payment: z.strictObject({ paymentId: z.string().regex(/^pay_[0-9a-f]{24}$/) }),
  check_payment: z.strictObject({ checkId: z.string().regex(/^chk_[0-9a-f]{24}$/) }),
  use_secret: z.strictObject({ useId: z.string().regex(/^use_[0-9a-f]{24}$/) }),
  buy: z.strictObject({ purchaseId: z.string().regex(/^pur_[0-9a-f]{24}$/) }),
  pay_out: z.strictObject({ projectId: z.string().regex(/^prj_[0-9a-f]{24}$/) }),
  purge_project: z.strictObject({ projectId: z.string().regex(/^prj_[0-9a-f]{24}$/) }),
  sign_in_company: z.strictObject({ signInId: z.string().regex(/^csi_[0-9a-f]{24}$/) }),
  read_client_document: z.strictObject({ documentId: z.string().regex(/^ocd_[0-9a-f]{24}$/) }),
  examine_service: z.strictObject({ reportId }),
  examine_mail: z.strictObject({ reportId }),
  examine_chain: z.strictObject({ reportId }),
} as const

export type TaskName = keyof typeof taskPayloads
export type TaskPayload<Name extends TaskName> = z.infer<(typeof taskPayloads)[Name]>

/**
 * Lists the worker pools and the runners in each pool. A runner does one kind of work in a pool and has its own slots
 * for jobs. Therefore slow work of one runner never delays another runner. For example, a smarthost that does not
 * respond does not delay inbound mail.
 */
export const POOLS = {
  mail: ['inbound', 'outbound'],
  webhooks: ['webhooks'],
  vault: ['vault'],
  purse: ['purse'],
  payments: ['payments'],
} as const

export type PoolName = keyof typeof POOLS
export type RunnerName = (typeof POOLS)[PoolName][number]

/** Lists the names of all job runners of the worker processes. */
export const RUNNER_NAMES: readonly RunnerName[] = Object.values(POOLS).flat()

/** Maps each task of the job queue to the pool of workers that runs the task. */
export const TASK_POOL: Record<TaskName, PoolName> = {
  parse_inbound: 'mail',
  parse_batch: 'mail',
  send_mail: 'mail',
  announce_approval: 'mail',
  expire_approval: 'mail',
  mail_sign_in_link: 'mail',
  purge_project: 'mail',
  read_report: 'mail',
  read_attachments: 'mail',
  index_search: 'mail',
  expand_events: 'mail',
  verify_domain: 'mail',
  deliver_webhook: 'webhooks',
  verify_endpoint: 'webhooks',
  try_endpoint: 'webhooks',
  read_client_document: 'webhooks',
  sign_in_company: 'webhooks',
  use_secret: 'vault',
  buy: 'purse',
  pay_out: 'purse',
  settle_payment: 'payments',
  check_payment: 'payments',
  // A task that examines a part of the service for the doctor (the self-check) runs in the pool that has the settings
  // for this part.
  examine_service: 'webhooks',
  examine_mail: 'mail',
  examine_chain: 'payments',
}
