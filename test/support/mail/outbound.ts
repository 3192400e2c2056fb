import { expect } from 'bun:test'
import { transaction } from '../../../sql/db.ts'
import { type Agent, type Client, messagePath, type TestService } from '../service.ts'
import { waitFor } from '../waitFor.ts'
import type { Sink } from './sink.ts'

/** Sends a mail that the service must accept. @returns the response of the API */
export async function sendMail(agent: Client, body: object = {}): Promise<any> {
  const mail = { to: ['ada@example.com'], subject: 'Subject', text: 'Text', ...body }
  const answer = await agent.post('/v0/messages/send', mail)
  expect([answer.status, answer.body?.message]).toEqual([201, undefined])
  return answer.body
}

/** Waits until a sink (the SMTP server of a test) has received a message. */
export const sunkAt = (sink: Sink, messageId: string) =>
  waitFor(`${messageId} at the sink`, () =>
    sink.mails.find((mail) => mail.email.messageId === messageId),
  )

/**
 * Waits until a sink (the SMTP server of a test) has a copy of the message for each recipient. @returns the received
 * copies by recipient
 */
export const copiesAt = (sink: Sink, messageId: string, recipients: readonly string[]) =>
  waitFor(`the copies of ${messageId}`, () => {
    const copies = sink.mails.filter((mail) => mail.email.messageId === messageId)
    const byRecipient = new Map(copies.map((copy) => [copy.to[0]!, copy]))
    return recipients.every((one) => byRecipient.has(one)) ? byRecipient : null
  })

/** Waits until a message has a delivery status. @returns the message */
export const untilStatus = (agent: Agent, messageId: string, wanted: string): Promise<any> =>
  waitFor(`${messageId} to be ${wanted}`, async () => {
    const { body } = await agent.get(messagePath(messageId))
    return body.deliveryStatus === wanted ? body : null
  })

/** Makes the next attempt to send a message due now. The recipient `late` is due three seconds later. */
export async function hurry(
  { database }: TestService,
  messageId: string,
  late: string | null = null,
): Promise<void> {
  const message = `(select row from messages where message_id = $1 and direction = 'sent')`
  // The service locks the row of the mail before the rows of its recipients. One statement for both tables would not
  // keep this order.
  await transaction(database.pool, async (db) => {
    await db.query(
      `update outbound_mails set next_attempt_at = clock_timestamp() where message_row = ${message}`,
      [messageId],
    )
    await db.query(
      `update outbound_recipients
       set next_attempt_at = clock_timestamp() + case when address = $2 then interval '3 seconds' else '0' end
       where message_row = ${message} and state in ('queued', 'deferred')`,
      [messageId, late],
    )
  })
  await database.pool.query(
    `select graphile_worker.reschedule_jobs(array(
       select j.id from graphile_worker.jobs j join messages m on j.key = 'send_mail:' || m.row
       where m.message_id = $1), run_at := now())`,
    [messageId],
  )
}
