/**
 * Waits for the one-time code that a website mails at a sign-up. Set the environment variable KEY to a project key, API
 * to the URL of the service, and SENDER to the sender of the code.
 */
import { Purser } from 'purser/client'

const { KEY = '', API = 'http://127.0.0.1:3000', SENDER = 'no-reply@example.com' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })
const after = new Date().toISOString()
console.log(`sign up with ${(await purser.whoami()).email}`)

for (;;) {
  // Anybody can mail a one-time code. Therefore the agent waits only for codes from the expected sender.
  const found = await purser.messages.waitForCode({ from: SENDER, after, timeout: 60 })
  if (found === undefined) continue
  console.log(`code: ${found.code}`)
  const link = found.message.links?.find(({ purpose }) => purpose === 'verify')
  if (link !== undefined) console.log(`or confirm at ${link.href}`)
  break
}
