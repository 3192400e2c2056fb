/**
 * Uses a secret as an agent that never sees it. KEY is a project key, API the URL of the service, URL an HTTPS resource
 * that takes TOKEN as a bearer token.
 */
import { ForbiddenError, Purser } from 'purser/client'

const { KEY = '', API = 'http://127.0.0.1:3000', URL: url = '', TOKEN = '' } = process.env
const { vault } = new Purser({ apiKey: KEY, baseUrl: API })

// The program stores the token as the owner, who can also do so in the console. After this call no API key can read the
// token.
await vault.put('api-token', {
  type: 'API_KEY',
  data: { key: TOKEN },
  allowedHosts: [new URL(url).host],
  allowedMethods: ['GET'],
  allowedPaths: [new URL(url).pathname],
  placement: ['header:authorization'],
  reveal: 'owner',
})

// The agent first tries to read the token, and is refused. Then the agent uses the token in a request.
const refused = await vault.get('api-token').catch((error) => error)
console.log(`reading it: ${refused instanceof ForbiddenError ? 'refused' : 'not refused'}`)
const used = await vault.use('api-token', {
  url,
  headers: { Authorization: 'Bearer {{apiKey}}', Accept: 'application/json' },
})
console.log(`using it: ${used.state}, ${used.response?.status}`)
const note = { url, headers: { 'X-Note': 'My token is {{apiKey}}' } }
const elsewhere = await vault.use('api-token', note).catch((error) => error)
console.log(`writing it elsewhere: ${elsewhere instanceof ForbiddenError ? 'refused' : 'sent'}`)
console.log(used.response?.body)
