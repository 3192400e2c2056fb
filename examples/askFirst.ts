/**
 * Writes to a customer as an agent, and waits for the owner's decision about the mail. Set the environment variable KEY
 * to a project key, API to the URL of the service, and TO to the customer's address. The project must have the send
 * policy `approve` or `approve-new`.
 */
import { Purser } from 'purser/client'

const { KEY = '', API = 'http://127.0.0.1:3000', TO = 'ada@example.com' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })

const { draftId } = await purser.messages.drafts.create({ to: [TO], subject: 'Your order' })
await purser.messages.drafts.update(draftId, { text: 'It is on its way.' })
const { messageId, deliveryStatus = 'queued' } = await purser.messages.drafts.send(draftId)
console.log(`${deliveryStatus}: ${messageId}`)

// The owner may decide before the event stream begins. Therefore the program first reads the state of the message.
const ended = ['sent', 'rejected', 'expired', 'cancelled', 'failed', 'bounced']
for (;;) {
  const message = await purser.messages.get(messageId)
  if (message.deliveryStatus !== undefined && ended.includes(message.deliveryStatus)) {
    console.log(`${message.deliveryStatus}: ${message.deliveryError ?? 'as approved'}`)
    break
  }
  const signal = AbortSignal.timeout(10_000)
  const types = ['message.sent', 'message.rejected', 'message.failed'] as const
  try {
    for await (const { data } of purser.events({ types }, { signal })) {
      if (data.messageId === messageId) break
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
