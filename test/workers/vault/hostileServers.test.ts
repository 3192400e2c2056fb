/** Tests servers that return the secret of a request in many encodings. The agent must get no part of the secret. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { createServer } from 'node:tls'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { fillRequest, type UseRequest } from '../../../shared/vault/useRequest.ts'
import { maskedAnswer } from '../../../workers/vault/maskedAnswer.ts'
import { sendFilled } from '../../../workers/vault/sendFilled.ts'
import { createRandom } from '../../chaos/random.ts'
import { amount } from '../../support/database/extent.ts'
import { answering, closeServers, listen, serveRaw } from '../../support/process/localServer.ts'
import { newCertificate } from '../../support/process/tlsServer.ts'

const CASES = amount(2_000, 300)
const { next: random, pick } = createRandom(20_261_122, 'hostile')
const word = (length: number, letters = 'abcdefghijklmnopqrstuvwxyzABCDEF0123456789 .,:;-_') =>
  Array.from({ length }, () => pick([...letters])).join('')

const NAMED: Record<string, string> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' },
  ...{ ä: '&auml;', ö: '&ouml;', '§': '&sect;' },
}

/** Holds the encodings that the test applies to a secret. Several encodings can be applied one after another. */
const ENCODERS: Record<string, (text: string) => string> = {
  plain: (text) => text,
  upper: (text) => text.toUpperCase(),
  lower: (text) => text.toLowerCase(),
  base64: (text) => Buffer.from(text).toString('base64'),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  'base64 after one byte': (text) => Buffer.from(`u${text}`).toString('base64'),
  'base64 after two bytes': (text) => Buffer.from(`u:${text}!`).toString('base64'),
  'base64 among others': (text) => Buffer.from(`${word(9)}${text}${word(7)}`).toString('base64'),
  'base64 in lines': (text) =>
    Buffer.from(word(60) + text)
      .toString('base64')
      .replace(/.{76}/g, '$&\r\n'),
  'base64 in lower case': (text) => Buffer.from(text).toString('base64').toLowerCase(),
  url: encodeURIComponent,
  'every byte as %XX': (text) => [...Buffer.from(text)].map((one) => `%${hex2(one)}`).join(''),
  'some bytes as %xx': (text) =>
    [...Buffer.from(text)]
      .map((one) =>
        one > 126 || one < 33 || random() < 0.4
          ? `%${hex2(one).toUpperCase()}`
          : String.fromCharCode(one).replace('%', '%25'),
      )
      .join(''),
  form: (text) => new URLSearchParams({ v: text }).toString().slice(2),
  json: (text) => JSON.stringify(text).slice(1, -1),
  'json in ASCII': (text) =>
    JSON.stringify(text)
      .slice(1, -1)
      .replace(/[^\0-\x7f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'json with slashes': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  '\\u everywhere': (text) =>
    Array.from(
      { length: text.length },
      (_, n) => `\\u${text.charCodeAt(n).toString(16).padStart(4, '0')}`,
    ).join(''),
  '\\x everywhere': (text) => [...Buffer.from(text)].map((one) => `\\x${hex2(one)}`).join(''),
  html: (text) =>
    text.replace(
      /[&<>"']/g,
      (one) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[one]!,
    ),
  'html names': (text) => text.replace(/[&<>"'äö§]/g, (one) => NAMED[one]!),
  'html numbers': (text) => [...text].map((one) => `&#${one.codePointAt(0)};`).join(''),
  'html hexadecimal': (text) =>
    [...text].map((one) => `&#x${one.codePointAt(0)!.toString(16)};`).join(''),
  hex: (text) => Buffer.from(text).toString('hex'),
  'HEX:HEX': (text) =>
    Buffer.from(text)
      .toString('hex')
      .toUpperCase()
      .replace(/..(?=.)/g, '$&:'),
  'hex among others': (text) => Buffer.from(word(5) + text).toString('hex'),
  bytes: (text) => JSON.stringify([...Buffer.from(text)]),
  'quoted-printable': (text) =>
    [...Buffer.from(text)]
      .map((one) =>
        one > 126 || one < 32 || one === 61
          ? `=${hex2(one).toUpperCase()}`
          : String.fromCharCode(one),
      )
      .join(''),
  'UTF-16 in base64': (text) => Buffer.from(text, 'utf16le').toString('base64'),
}
const hex2 = (one: number) => one.toString(16).padStart(2, '0')
const NAMES = Object.keys(ENCODERS)
/**
 * Holds encodings that the test never combines with others, because they lose the letter case, which no decoder can
 * restore.
 */
const LOSSY = new Set(['base64 in lower case'])
const LATER = NAMES.filter((name) => !LOSSY.has(name) && name !== 'upper' && name !== 'lower')

type Hostile = { encoders: string[]; place: string; coding: string; chunked: boolean }
let hostile: Hostile
let echo = ''

const PLACES = [
  'body',
  'header',
  'header name',
  'status',
  'location',
  'cookie',
  'trailer',
  'error',
] as const
const CODINGS: Record<string, (bytes: Uint8Array<ArrayBuffer>) => Buffer> = {
  '': (bytes) => Buffer.from(bytes),
  gzip: gzipSync,
  deflate: deflateSync,
  'deflate ': deflateRawSync,
  br: brotliCompressSync,
  'gzip, br': (bytes) => brotliCompressSync(Uint8Array.from(gzipSync(bytes))),
  'x-gzip': gzipSync,
}

/** Replaces the characters that a header line cannot contain. */
const lineOf = (text: string) => text.replace(/[\r\n\0]/g, ' ')

function answerOf(): Buffer[] {
  const { place, coding, chunked } = hostile
  const lines = [
    `HTTP/1.1 ${place === 'error' ? 500 : place === 'location' ? 302 : 200} ${place === 'status' ? lineOf(echo) : 'OK'}`,
  ]
  if (place === 'header') lines.push(`X-Echo: ${lineOf(echo)}`, `X-Echo: ${lineOf(echo)}`)
  if (place === 'header name') lines.push(`X-${Buffer.from(echo).toString('hex')}: 1`)
  if (place === 'location') lines.push(`Location: https://evil.example/?s=${lineOf(echo)}`)
  if (place === 'cookie') lines.push(`Set-Cookie: s=${lineOf(echo)}; Path=/`)
  const shown =
    place === 'body' || place === 'error' ? `{"a":"${word(30)}","v":"${echo}"}` : word(40)
  const body = CODINGS[coding]!(Uint8Array.from(Buffer.from(shown)))
  if (coding !== '') lines.push(`Content-Encoding: ${coding.trim()}`)
  lines.push('Content-Type: application/json', 'Connection: close')
  if (!chunked && place !== 'trailer') {
    lines.push(`Content-Length: ${body.length}`, '', '')
    return [Buffer.from(lines.join('\r\n')), body]
  }
  lines.push('Transfer-Encoding: chunked', 'Trailer: X-Trailer', '', '')
  const parts: Buffer[] = [Buffer.from(lines.join('\r\n'))]
  for (let at = 0; at < body.length; ) {
    const size = 1 + Math.floor(random() * 40)
    const piece = body.subarray(at, at + size)
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'))
    at += size
  }
  const trailer = place === 'trailer' ? `X-Trailer: ${lineOf(echo)}\r\n` : ''
  return [...parts, Buffer.from(`0\r\n${trailer}\r\n`)]
}

let ca = ''
let port = 0
/** Holds the limits on the secret. The owner allows the secret anywhere in the request body. */
const BOUNDS = {
  ...{ allowedMethods: null, allowedPaths: null, placement: ['body'] },
  get allowedHosts() {
    return [`hostile.example:${port}`]
  },
}
beforeAll(async () => {
  const certificate = newCertificate('hostile.example')
  ca = certificate.ca
  const server = createServer({ key: certificate.key, cert: ca }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', async () => {
      for (const part of answerOf()) {
        socket.write(part)
        if (hostile.chunked && random() < 0.05) await new Promise((done) => setImmediate(done))
      }
      socket.end()
    })
  })
  port = await listen(Object.assign(server, { closeAllConnections() {} }) as unknown as Server)
})
afterAll(closeServers)

const SECRETS = [
  () => word(8 + Math.floor(random() * 30), 'abcdefghijklmnopqrstuvwxyz0123456789'),
  () => `sk_live_${word(24, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789')}`,
  () => word(12, `abcXYZ019"'\\/<>&%+=?#@!$;: `).trim().padEnd(12, '%'),
  () => `${word(5)}pä§swörd-ключ-鍵${word(4)}`.trim(),
  () => `%41\\u0042&amp;${word(6)}==`.trim(),
  () => word(64, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'),
  () => `${word(3)}😀${word(6)}`.trim(),
]

/** Tells whether a text contains a secret, plain or in an encoding that JavaScript's built-in functions can decode. */
function shows(text: string, secret: string, depth = 2): boolean {
  const folded = text.toLowerCase()
  if (folded.includes(secret.toLowerCase()) || folded.includes(echo.toLowerCase())) return true
  if (depth === 0) return false
  const tries: string[] = []
  const attempt = (decode: () => string) => {
    try {
      tries.push(decode())
    } catch {
      // A decoder throws an error if the text is not in its encoding, which means that it finds no secret.
    }
  }
  attempt(() => decodeURIComponent(text))
  attempt(() => decodeURIComponent(text.replaceAll('+', ' ')))
  attempt(() => JSON.parse(`"${text}"`))
  attempt(() => JSON.stringify(JSON.parse(text)))
  for (const run of text.match(/[\w+/-]{8,}/g) ?? []) {
    for (const skip of [0, 1, 2, 3]) tries.push(Buffer.from(run.slice(skip), 'base64').toString())
    tries.push(Buffer.from(run, 'hex').toString(), Buffer.from(run, 'base64').toString('utf16le'))
  }
  return tries.some((one) => one !== text && shows(one, secret, depth - 1))
}

test(
  `none of ${CASES} generated responses of a hostile server reveals the secret to the agent`,
  async () => {
    const request: UseRequest = {
      ...{ method: 'POST', url: `https://hostile.example:${port}/`, headers: {} },
      body: '{{password}}',
    }
    const policy = { allowPrivate: true, resolve: answering('127.0.0.1'), ca }
    const leaks: string[] = []
    const states: Record<string, number> = {}
    for (let n = 0; n < CASES; n++) {
      const secret = SECRETS[n % SECRETS.length]!()
      const first = NAMES[n % NAMES.length]!
      const later = LOSSY.has(first) ? 0 : n % 3
      const encoders = [first, pick(LATER), pick(LATER)].slice(0, 1 + later)
      hostile = {
        ...{ encoders, place: pick(PLACES), coding: pick(Object.keys(CODINGS)) },
        chunked: random() < 0.5,
      }
      echo = encoders.reduce((text, name) => ENCODERS[name]!(text), secret)
      const credential = { type: 'LOGIN', data: { password: secret }, metadata: {}, ...BOUNDS }
      const end = await sendFilled(
        policy,
        fillRequest(request, credential, Date.now()),
        maskedAnswer,
      )
      states[end.state] = (states[end.state] ?? 0) + 1
      const answer = end.state === 'answered' ? end.answer : null
      const shown = [
        answer?.statusText ?? '',
        answer?.body ?? '',
        end.state === 'answered' ? '' : end.error,
        ...Object.entries(answer?.headers ?? {}).flat(),
      ]
      if (shown.some((text) => shows(text, secret))) {
        leaks.push(`${n} ${JSON.stringify({ ...hostile, secret, shown })}`)
      }
    }
    process.stderr.write(
      `${CASES} hostile answers, ${leaks.length} leaks: ${JSON.stringify(states)}\n`,
    )
    expect(leaks.slice(0, 5)).toEqual([])
    expect(states.answered).toBeGreaterThan(CASES * 0.8)
  },
  { timeout: 180_000 },
)

test('a request with a secret opens no connection to a private address, and trusts only certificates of the known authorities', async () => {
  const request: UseRequest = {
    ...{ method: 'GET', url: `https://hostile.example:${port}/`, headers: {}, body: null },
  }
  const credential = {
    ...{ type: 'LOGIN', data: { password: 'correct horse' }, metadata: {} },
    ...BOUNDS,
  }
  const filled = fillRequest(request, credential, Date.now())
  const send = (policy: object) =>
    sendFilled(
      { allowPrivate: true, resolve: answering('127.0.0.1'), ca, ...policy },
      filled,
      maskedAnswer,
    )
  expect(await send({ allowPrivate: false })).toEqual({
    state: 'failed',
    error: 'address is not public',
  })
  expect(await send({ ca: newCertificate('hostile.example').ca })).toMatchObject({
    state: 'failed',
  })
})

test('if a server gets a request with a secret and then breaks TLS, the request ends as unknown, because the server may have acted', async () => {
  const { key, ca: own } = newCertificate('hostile.example')
  let received = 0
  let spoil = () => {}
  const inner = createServer({ key, cert: own }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      received++
      spoil()
    })
  })
  const innerPort = await listen(
    Object.assign(inner, { closeAllConnections() {} }) as unknown as Server,
  )
  const spoiled = await serveRaw((client) => {
    const server = connect(innerPort, '127.0.0.1')
    server.on('error', () => {})
    client.pipe(server)
    server.pipe(client)
    // These bytes are not a TLS record (RFC 8446 §5.1), so they break the TLS connection.
    spoil = () => client.write('HTTP/1.1 400 Bad Request\r\n\r\n')
  })
  const request: UseRequest = {
    ...{ method: 'POST', url: `https://hostile.example:${spoiled}/`, headers: {} },
    body: '{{password}}',
  }
  const credential = {
    ...{ type: 'LOGIN', data: { password: 'correct horse' }, metadata: {}, ...BOUNDS },
    allowedHosts: [`hostile.example:${spoiled}`],
  }
  const policy = { allowPrivate: true, resolve: answering('127.0.0.1'), ca: own }
  const end = await sendFilled(policy, fillRequest(request, credential, Date.now()), maskedAnswer)
  expect(received).toBe(1)
  expect(end).toMatchObject({ state: 'unknown' })
})
