/**
 * Uses a secret in the role of an agent that never sees the secret. Set the environment variable KEY to a project key,
 * API to the URL of the service, and URL to an HTTPS resource that accepts TOKEN as a bearer token.
 */
import { ForbiddenError, Purser } from 'purser/client'

const { KEY = '', API = 'http://127.0.0.1:3000', URL: url = '', TOKEN = '' } = process.env
const { vault } = new Purser({ apiKey: KEY, baseUrl: API })

// The program stores the token in the role of the owner, who can also store it in the console. After that, nobody can
// read the token with an API key.
await vault.put('api-token', {
  type: 'API_KEY',
  data: { key: TOKEN },
  allowedHosts: [new URL(url).host],
  allowedMethods: ['GET'],
  allowedPaths: [new URL(url).pathname],
  placement: ['header:authorization'],
  reveal: 'owner',
})

// The agent first tries to read the token, and the service refuses the call. Then the agent uses the token in an HTTP
// request without seeing the token.
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
