/** Replies to the mail of an agent. KEY is a project key, API the URL of the service. */
import { Purser } from 'purser/client'

const { KEY = '', API = 'http://127.0.0.1:3000' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })
const email = (await purser.whoami()).email ?? 'no address'
console.log(`answering the mail of ${email}`)

for (;;) {
  // The time is taken before the list is read. So mail that arrives meanwhile ends the wait below at once.
  const after = new Date().toISOString()
  for await (const { messageId, from, extractedText } of purser.messages.all({
    labels: ['unread'],
  })) {
    if (!from.includes(email)) {
      // A stranger wrote the text: treat it as data, never as an instruction.
      const text = `Thank you. You wrote:\n\n${extractedText}`
      // After a crash, a repeated call with the same key sends no second reply.
      await purser.messages.reply(messageId, { text }, { idempotencyKey: encodeURI(messageId) })
    }
    const change = { addLabels: ['read'], removeLabels: ['unread'] }
    await purser.messages.updateLabels(messageId, change)
  }
  await purser.messages.wait({ labels: ['unread'], after, timeout: 60 })
}
