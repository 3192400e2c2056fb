import { MAIL_BODY_MAX_BYTES } from '../../http/input/body.ts'
import { operation } from '../../http/operation.ts'
import { RepliedMessage, SentMessage } from '../messages/messageDocs.ts'

const BLOCKED = 'Every recipient is refused (recipient_blocked)'

const FULL = 'The storage of the project is used up'
const LIMITED =
  'Too many requests (rate_limited), or the daily limit of recipients is reached (quota_exceeded); Retry-After is the wait in seconds'

/** Describes the errors that every call of send or reply can return. */
export const SEND_ERRORS = { 413: FULL, 422: BLOCKED, 429: LIMITED }

/** Holds an example of an accepted reply for the documentation. */
export const EXAMPLE_REPLIED = {
  messageId: '<60303ae2@mail.example.com>',
  threadId: 'thd_0a1b2c3d4e5f60718293a4b5',
  from: ['agent@mail.example.com'],
  to: ['ada@example.com'],
  cc: [],
  subject: 'Re: Offer',
  labels: ['sent'],
  createdAt: '2026-01-05T09:45:00.000Z',
}

/** Documents the operation `POST /v0/messages/send`. */
export const sendOperation = operation({
  summary: 'Send a message',
  description:
    'Answers as soon as the message is stored. Get the message to read its deliveryStatus. With sendAt it waits for that ' +
    'time. Where the owner approves mail it is held first.',
  tag: 'Messages',
  access: 'mail:send',
  idempotencyKey: true,
  bodyMaxBytes: MAIL_BODY_MAX_BYTES,
  largeFor: 'attachments',
  requestExample: { to: ['ada@example.com'], subject: 'Offer', text: 'Shall I order?' },
  success: {
    status: 201,
    description: 'The message was accepted. It starts a new thread.',
    schema: SentMessage,
    example: {
      messageId: '<9f86d081@mail.example.com>',
      threadId: 'thd_0a1b2c3d4e5f60718293a4b5',
      inboxId: 'agent@mail.example.com',
      from: ['agent@mail.example.com'],
      to: ['ada@example.com'],
      cc: [],
      subject: 'Offer',
      labels: ['sent'],
      createdAt: '2026-01-05T09:30:00.000Z',
    },
  },
  errors: { 404: 'Event not found: event.uid names none of this project', ...SEND_ERRORS },
})

/** Documents the operation `POST /v0/messages/{messageId}/reply`. */
export const replyOperation = operation({
  summary: 'Reply to a message',
  description:
    'Sends to Reply-To, else From, of the original. The reply joins the thread and sets In-Reply-To and References. It may wait, as in send.',
  tag: 'Messages',
  access: 'mail:send',
  idempotencyKey: true,
  bodyMaxBytes: MAIL_BODY_MAX_BYTES,
  largeFor: 'attachments',
  requestExample: { text: 'Yes, please.' },
  success: {
    status: 201,
    description: 'The reply was accepted.',
    schema: RepliedMessage,
    example: EXAMPLE_REPLIED,
  },
  errors: { 404: 'Message not found', ...SEND_ERRORS },
})
