/**
 * Writes to a customer as an agent, and waits for the decision of the owner. KEY is a project key, API the URL of the
 * service, TO the customer. The project has the send policy `approve` or `approve-new`.
 */
import { Purser } from 'purser/client'

const { KEY = '', API = 'http://127.0.0.1:3000', TO = 'ada@example.com' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })

const { draftId } = await purser.messages.drafts.create({ to: [TO], subject: 'Your order' })
await purser.messages.drafts.update(draftId, { text: 'It is on its way.' })
const { messageId, deliveryStatus = 'queued' } = await purser.messages.drafts.send(draftId)
console.log(`${deliveryStatus}: ${messageId}`)

// The owner may decide before the event stream begins, so the program first reads the state of the message.
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
