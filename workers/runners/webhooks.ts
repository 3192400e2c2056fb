import { nextDeliveryInMs } from '../../sql/events/deliveries.ts'
import { createReadClientDocument } from '../account/readClientDocument.ts'
import { type CompanyOptions, createSignInCompany } from '../account/signInCompany.ts'
import { createDeliverWebhook } from '../events/deliverWebhook.ts'
import { createExamineService, type ExamineOptions } from '../operations/doctor/examine.ts'
import { RUNNER_CONNECTIONS } from '../queue/runnerConnections.ts'
import { createTryEndpoint } from '../till/tryEndpoint.ts'
import { createVerifyEndpoint } from '../till/verifyEndpoint.ts'
import type { OutboundHttp, Runner } from './runner.ts'

/**
 * Runs the jobs that deliver webhooks, call the company’s identity provider, verify and test endpoints, and examine the
 * service for the doctor (the self-check).
 */
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
  // Many jobs may run at once, because the job of a webhook delivery mostly waits for its receiver, and needs the
  // database for only a few milliseconds.
  concurrency: 200,
  connections: RUNNER_CONNECTIONS.webhooks,
  nextInMs: nextDeliveryInMs,
})
