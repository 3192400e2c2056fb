import type { Config } from '../../../shared/config/config.ts'
import { limitHeaders } from '../../../shared/http/headerLimit.ts'
import { SignedMailError } from '../../../shared/mail/http/signedMail.ts'
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'
import { serve } from '../../../shared/process/serve.ts'
import type { Running } from '../../../shared/process/service.ts'
import type { Pool } from '../../../sql/db.ts'
import { recordRelayReport } from '../../../sql/mail/inbound/relayReports.ts'
import { readUrl } from '../../http/input/url.ts'
import { createClientAddress } from '../../http/limits/clientAddress.ts'
import { MESSAGE_MAX_BYTES, SmtpReply, TOO_MANY_CONNECTIONS } from '../acceptance.ts'
import { PATIENCE, type Patience } from '../listener.ts'
import { arrivingBody } from './arrivingBody.ts'
import { HttpRefusal, refusalResponse, toRefusal } from './httpAnswer.ts'
import type { InboundKeys } from './inboundKeys.ts'
import { createPostmark } from './postmark.ts'
import { readRawMail } from './rawMail.ts'
import {
  type ArrivingRequest,
  type HandedMail,
  type HandedReports,
  type HttpParts,
  takeMail,
} from './takeMail.ts'

const DRAIN_POLL_MS = 20
/**
 * Limits the bytes of the headers of an HTTP request. The header with the envelope of a mail may have 64 KB
 * (shared/mail/http/signedMail.ts).
 */
const HEADERS_MAX_BYTES = 80 * 1024

/**
 * Reads a mail or a report from an HTTP request, or refuses the request. Returns `null` if the path belongs to the
 * adapter of another mail service.
 * @throws {HttpRefusal} if the adapter of the mail service refuses the HTTP request.
 */
type Adapter = (
  request: ArrivingRequest,
  pathname: string,
  keys: InboundKeys,
) => Promise<HandedMail | HandedReports | null>

/** Lists the adapters. There is one adapter for each format in which mail services deliver mail. */
const ADAPTERS: readonly Adapter[] = [readRawMail, createPostmark()]

/**
 * Starts the server that receives mail over HTTP. It runs in the process of the SMTP listener, because the spool (the
 * file of accepted mail) belongs to this process (docs/decisions/mail-over-http.md). The service accepts a mail only
 * when it is on disk in the spool.
 */
export function startMailServer(
  parts: ServerParts,
  { http, host, trustedProxies, patience = PATIENCE }: MailServerSettings,
): Running & { port: number } {
  const clientAddress = createClientAddress(trustedProxies)
  const inFlight = new Set<End>()
  const idleTimeout = Math.ceil(patience.silentMs / 1000)
  const answer = async (request: Request, socketAddress: string): Promise<Response> => {
    const address = clientAddress(socketAddress, request.headers.get('x-forwarded-for'))
    const ending = new AbortController()
    const end: End = (reason) => ending.abort(new SmtpReply(421, reason))
    inFlight.add(end)
    const deadline = setTimeout(() => end(TOO_LONG), patience.requestMs)
    try {
      const given = { address, end, signal: ending.signal, silentMs: patience.silentMs }
      return Response.json(await receive(parts, request, given))
    } catch (error) {
      const refusal = toRefusal(error) ?? unexpected(parts, error)
      parts.metrics.refused(labelOf(error, refusal))
      const response = refusalResponse(refusal)
      // The response closes the connection, because the client may still send a body that the service will not read.
      if (ending.signal.aborted) response.headers.set('connection', 'close')
      return response
    } finally {
      clearTimeout(deadline)
      inFlight.delete(end)
    }
  }
  limitHeaders(HEADERS_MAX_BYTES)
  const server = serve(
    {
      port: http.port,
      hostname: host,
      idleTimeout,
      // Bun's limit on a request body is above the limit of this service. Therefore a client gets this service's error
      // response instead of Bun's.
      maxRequestBodySize: MESSAGE_MAX_BYTES * 2,
      async fetch(request, self) {
        self.timeout(request, 0)
        try {
          return await answer(request, self.requestIP(request)?.address ?? '')
        } finally {
          self.timeout(request, idleTimeout)
        }
      },
    },
    'INBOUND_PORT',
  )
  return {
    port: server.port!,
    async stop() {
      const closed = server.stop()
      const endAll = setTimeout(() => {
        for (const end of inFlight) end('4.3.2 The service is stopping')
      }, patience.closeMs)
      while (inFlight.size > 0) await Bun.sleep(DRAIN_POLL_MS)
      clearTimeout(endAll)
      await Promise.race([closed, Bun.sleep(DRAIN_POLL_MS * 5)])
      await server.stop(true)
    },
  }
}

/** Ends an HTTP request with the status 503 and a reason. */
type End = (reason: string) => void

const TOO_LONG = '4.4.2 This connection has lasted too long'
const TOO_SILENT = '4.4.2 The client is silent for too long'

type ServerParts = HttpParts & {
  keys: InboundKeys
  pool: Pool
  /** Holds the adapter that receives mail from Amazon SES, or `null` if the operator has configured no SNS topic. */
  ses: Adapter | null
}

type MailServerSettings = {
  http: { port: number }
  host: string
  trustedProxies: Config['trustedProxies']
  patience?: Patience | undefined
}

async function receive(
  parts: ServerParts,
  request: Request,
  {
    address,
    end,
    signal,
    silentMs,
  }: { address: string; end: End; signal: AbortSignal; silentMs: number },
) {
  if (request.method !== 'POST') throw new HttpRefusal(405, 'The method must be POST')
  const connection = parts.limits.enter(address, end)
  if (connection === null) throw new SmtpReply(421, TOO_MANY_CONNECTIONS)
  try {
    const { url, headers } = request
    const body = arrivingBody(request.body, {
      signal,
      silentMs,
      onSilence: () => end(TOO_SILENT),
      onChunk() {
        connection.activeMs = performance.now()
      },
    })
    const handed = await read(
      {
        url,
        headers,
        body,
        countAs(sharers) {
          if (parts.limits.countAs(connection, sharers).length > 0) return
          throw new SmtpReply(421, TOO_MANY_CONNECTIONS)
        },
        hold: (options) => parts.incoming.begin([], connection, { isPaced: false, ...options }),
      },
      parts,
    )
    if ('reports' in handed) {
      const { reports, key } = handed
      let isNew = false
      for (const report of reports) {
        if (await recordRelayReport(parts.pool, report, key.domain)) isNew = true
      }
      return { recorded: isNew }
    }
    try {
      return await takeMail(parts, handed, { address, connection, signal })
    } finally {
      handed.release?.()
    }
  } finally {
    parts.limits.leave(connection)
  }
}

async function read(
  request: ArrivingRequest,
  { keys, ses }: ServerParts,
): Promise<HandedMail | HandedReports> {
  const { pathname } = readUrl(request)
  for (const adapter of ses === null ? ADAPTERS : [...ADAPTERS, ses]) {
    try {
      const mail = await adapter(request, pathname, keys)
      if (mail !== null) return mail
    } catch (error) {
      if (!(error instanceof SignedMailError)) throw error
      throw new HttpRefusal(error.status, error.message)
    }
  }
  throw new HttpRefusal(404, 'Not found')
}

/**
 * Returns the label under which a metric counts a refused mail. The label is always a reply text of this service, and
 * never a text from outside.
 */
const labelOf = (error: unknown, { status }: HttpRefusal) =>
  error instanceof SmtpReply ? `${error.responseCode} ${error.message}` : `HTTP ${status}`

function unexpected({ log }: HttpParts, error: unknown): HttpRefusal {
  if (isDatabaseUnavailable(error)) {
    return new HttpRefusal(503, '4.3.0 The key cannot be checked now')
  }
  log.error({ err: error }, 'mail over HTTP failed')
  return new HttpRefusal(503, '4.3.0 Something went wrong, try again later')
}
