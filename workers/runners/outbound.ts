import type { ApprovalTokens } from '../../shared/approvalLink.ts'
import type { ObjectStore } from '../../shared/blobs/objectStore.ts'
import type { BounceKeys } from '../../shared/mail/compose/bounceAddress.ts'
import type { SignInTokens } from '../../shared/people/signInLink.ts'
import { createBlobs } from '../../sql/blobs/blobs.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import { nextMailInMs } from '../../sql/mail/outbound/outboundMails.ts'
import { createMailSignInLink } from '../account/mailSignInLink.ts'
import { createAnnounceApproval, createExpireApproval } from '../mail/announceApproval.ts'
import { createSendMail } from '../mail/outbound/sendMail.ts'
import type { Transport } from '../mail/outbound/transport.ts'
import { createExamineMail, type ExamineOptions } from '../operations/doctor/examine.ts'
import { MAIL_LIMITS } from '../queue/lanes.ts'
import { RUNNER_CONNECTIONS } from '../queue/runnerConnections.ts'
import type { Runner } from './runner.ts'

/**
 * Runs the jobs that send mail, tell owners about mail that waits for approval, and examine mail for the doctor (the
 * self-check).
 */
export const outboundRunner = (
  options: {
    mailDomain: string
    baseUrl: string
    approvalTokens: ApprovalTokens
    signInTokens: SignInTokens
    transport: Transport
    keyring: KeyringSource
    bounceKeys: BounceKeys
    postmaster?: string | undefined
    storageBytes?: number | null
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
  // Many jobs may run at once, because a job of outbound mail mostly waits for the remote host.
  concurrency: 32,
  connections: RUNNER_CONNECTIONS.outbound,
  lanes: MAIL_LIMITS,
  // The job alarm of the worker pool starts the job of a scheduled mail exactly when the mail is due.
  nextInMs: nextMailInMs,
})
