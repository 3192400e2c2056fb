import type { MessageEventData } from '../../../shared/events/events.ts'
import type { Queryable } from '../../db.ts'

/** Describes the data of an event about a message. The webhooks about the event continue the trace of the message. */
export type MessageEvent = {
  projectId: string
  status: string
  data: MessageEventData
  traceparent: string | null
  /** Tells whether the project sent the message. */
  isSent: boolean
  /** Counts the bytes of the whole mail. */
  storedBytes: number
}

/** Reads the event data of messages, and returns the event data in no particular order. */
export async function readMessageEvents(
  db: Queryable,
  messageRows: readonly string[],
): Promise<MessageEvent[]> {
  const { rows } = await db.query<MessageEvent>({
    name: 'read-message-events',
    text: `
      select m.project_id as "projectId", m.delivery_status as status,
        m.direction = 'sent' as "isSent", m.stored_bytes::float8 as "storedBytes", json_build_object(
        'messageId', m.message_id, 'threadId', t.id, 'inboxId', p.email_address, 'from', m.from_addresses,
        'to', m.to_addresses, 'subject', m.subject, 'labels', m.labels) as data,
        (select o.traceparent from outbound_mails o where o.message_row = m.row) as traceparent
      from messages m join threads t on t.row = m.thread_row join projects p on p.id = m.project_id
      where m.row = any ($1)`,
    values: [messageRows],
  })
  return rows
}
