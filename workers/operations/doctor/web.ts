import { isIP } from 'node:net'
import {
  judgeCertificate,
  type SeenCertificate,
} from '../../../shared/doctor/certificateFindings.ts'
import type { Finding } from '../../../shared/doctor/finding.ts'
import { judgeBaseUrl, judgeGuard } from '../../../shared/doctor/webFindings.ts'
import { guardedExchange } from '../../http/guardedRequest.ts'
import { type DoctorTools, LOOK_MS, takeLooks } from './look.ts'
import type { Outside } from './outside.ts'
import { lookAtTls } from './smtpLook.ts'

/** Examines whether clients can reach BASE_URL. */
export const lookAtWeb = (
  tools: DoctorTools,
  certificate: Promise<SeenCertificate | null>,
): Promise<Finding[]> =>
  takeLooks('web', [
    { check: 'BASE_URL', run: () => baseUrl(tools) },
    { check: 'certificate of BASE_URL', run: () => judgeWebCertificate(tools, certificate) },
  ])

/**
 * Returns the certificate of BASE_URL. Returns `null` if BASE_URL does not begin with `https:`, or if its server does
 * not answer.
 */
export async function webCertificate({
  config,
  ports,
  ca,
}: DoctorTools): Promise<SeenCertificate | null> {
  const { protocol, hostname, port } = new URL(config.http.baseUrl)
  if (protocol !== 'https:') return null
  const host = hostname.replace(/^\[|\]$/g, '')
  return lookAtTls({
    host,
    port: port === '' ? ports.https : Number(port),
    servername: host,
    ...(ca === undefined ? {} : { ca }),
  })
}

async function judgeWebCertificate(
  { config }: DoctorTools,
  seen: Promise<SeenCertificate | null>,
): Promise<Finding[]> {
  const certificate = await seen
  if (certificate === null) return []
  const name = new URL(config.http.baseUrl).hostname
  return [
    judgeCertificate({
      area: 'web',
      check: 'certificate of BASE_URL',
      name,
      certificate,
      now: new Date(),
      isDemanded: true,
      fix:
        isIP(name) === 0
          ? `certbot certonly -d ${name}   # or the like of your proxy`
          : `BASE_URL=https://NAME`,
    }),
  ]
}

/**
 * Sends an HTTP request to BASE_URL. The operator sets BASE_URL, so the host of BASE_URL may have a private address in
 * this network.
 */
async function baseUrl({ config, ca }: DoctorTools): Promise<Finding[]> {
  const url = config.http.baseUrl
  const answer = await guardedExchange({
    url: `${url}/healthz`,
    method: 'GET',
    timeoutMs: LOOK_MS,
    allowPrivate: true,
    ...(ca === undefined ? {} : { ca }),
  })
  return judgeBaseUrl(url, answer.ok ? { status: answer.status } : { failure: answer.detail })
}

/** Examines whether the HTTP client for webhooks reaches public addresses and does not reach internal addresses. */
export const lookAtWebhooks = (tools: DoctorTools, outside: Promise<Outside>): Promise<Finding[]> =>
  takeLooks('webhooks', [
    {
      check: 'guarded requests',
      run: async () => {
        const { config } = tools
        const { allowPrivateNetworks: allowPrivate, production, outsideUrl } = config
        const [{ outcome }, inside] = await Promise.all([
          outside,
          guardedExchange({
            url: 'https://127.0.0.1/',
            method: 'GET',
            timeoutMs: LOOK_MS,
            allowPrivate,
          }),
        ])
        return judgeGuard({
          outsideUrl,
          outside: outcome,
          inside: !inside.ok && inside.kind === 'blocked' ? 'blocked' : 'answered',
          allowPrivate,
          production,
        })
      },
    },
  ])
