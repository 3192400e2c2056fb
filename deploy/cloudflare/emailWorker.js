/**
 * Runs as a worker of Cloudflare Email Routing and hands each mail of a domain to Purser. Set three variables:
 * PURSER_URL (`https://HOST/v0/inbound/raw`), PURSER_KEY and PURSER_SECRET, from `POST /v0/platform/domains/DOMAIN/inbound`.
 * See docs/mail.md, "Mail in over HTTP".
 */
export default {
  /** Handles one mail that Cloudflare has received. Cloudflare calls this function once for each recipient. */
  async email(message, env) {
    const body = new Uint8Array(await new Response(message.raw).arrayBuffer())
    const envelope = base64url(utf8(JSON.stringify({ from: message.from, to: [message.to] })))
    const timestamp = String(Math.floor(Date.now() / 1000))
    const digest = hex(await crypto.subtle.digest('SHA-256', body))
    const signed = `v1\n${env.PURSER_KEY}\n${timestamp}\n${envelope}\n${digest}`
    const response = await fetch(env.PURSER_URL, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'message/rfc822',
        'purser-key': env.PURSER_KEY,
        'purser-timestamp': timestamp,
        'purser-envelope': envelope,
        'purser-digest': digest,
        'purser-signature': `v1=${hex(await hmac(env.PURSER_SECRET, signed))}`,
      },
    })
    if (response.ok) return
    // If the service responds with status 404 or 413, the sender of the mail gets a bounce. For any other HTTP status
    // of the response the function throws an error, so that the sending mail server tries again.
    if (response.status === 404) return message.setReject('5.1.1 No such inbox')
    if (response.status === 413) return message.setReject('5.3.4 Message too large')
    throw new Error(`Purser answered ${response.status}`)
  },
}

const utf8 = (text) => new TextEncoder().encode(text)

const hex = (buffer) =>
  [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('')

const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

async function hmac(secret, text) {
  const bytes = Uint8Array.from(atob(secret), (character) => character.charCodeAt(0))
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['sign'])
  return await crypto.subtle.sign('HMAC', key, utf8(text))
}
