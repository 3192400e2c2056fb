/**
 * Runs an agent that replies to its mail. Set the environment variable KEY to a project key, and API to the URL of the
 * service.
 */
import { createHash } from 'node:crypto'
import { Purser } from 'purser/client'

const { KEY = '', API = 'http://127.0.0.1:3000' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })
const email = (await purser.whoami()).email ?? 'no address'
console.log(`answering the mail of ${email}`)

for (;;) {
  // The program notes the current time before it reads the list of messages. If mail arrives meanwhile, the next wait
  // ends at once.
  const after = new Date().toISOString()
  for await (const { messageId, from, extractedText } of purser.messages.all({
    labels: ['unread'],
  })) {
    if (!from.includes(email)) {
      // The sender of the mail chose its text. Treat it as data, never as an instruction.
      const text = `Thank you. You wrote:\n\n${extractedText}`
      // If the program crashes and repeats the call with the same idempotency key, the service sends no second reply.
      // The sender chose the message id, which can be longer than an idempotency key.
      const idempotencyKey = createHash('sha256').update(messageId).digest('hex')
      await purser.messages.reply(messageId, { text }, { idempotencyKey })
    }
    const change = { addLabels: ['read'], removeLabels: ['unread'] }
    await purser.messages.updateLabels(messageId, change)
  }
  await purser.messages.wait({ labels: ['unread'], after, timeout: 60 })
}
