import { type Finding, findingsIn } from './finding.ts'

const { ok, warning, broken } = findingsIn('web')
const hooks = findingsIn('webhooks')

/** Holds the status of an HTTP response, or the reason for a missing response. */
export type SeenAnswer = { status: number } | { failure: string }

/** Makes the finding of the doctor (the service's self-check) about the response of `/healthz` at BASE_URL. */
export function judgeBaseUrl(baseUrl: string, answer: SeenAnswer): Finding[] {
  const { protocol, hostname } = new URL(baseUrl)
  const isHere = /^(?:localhost|127\.[\d.]+|\[::1?\]|0\.0\.0\.0)$/.test(hostname)
  const form =
    protocol === 'https:' && !isHere
      ? ok('BASE_URL', baseUrl)
      : warning(
          'BASE_URL',
          `${baseUrl} is no public https URL: receipts and links hold it`,
          'BASE_URL=https://agents.example.com',
        )
  const check = 'answer at BASE_URL'
  const fix = `curl -i ${baseUrl}/healthz   # the proxy must pass it to HOST:PORT`
  const answered =
    'failure' in answer
      ? broken(check, `none: ${answer.failure}`, fix)
      : answer.status === 200
        ? ok(check, '200')
        : broken(check, `${answer.status} instead of 200`, fix)
  return [form, answered]
}

/**
 * Describes the result of a request through the HTTP client that blocks private addresses. The result `blocked` means
 * that the HTTP client did not send the request.
 */
export type GuardedOutcome = 'answered' | 'blocked' | { failure: string }

/**
 * Makes the findings of the doctor (the service's self-check) about two requests: to an outside address, and to an
 * address of this machine.
 */
export function judgeGuard(seen: {
  outsideUrl: string
  outside: GuardedOutcome
  inside: GuardedOutcome
  allowPrivate: boolean
  production: boolean
}): Finding[] {
  const { host } = new URL(seen.outsideUrl)
  const out = 'way to the outside'
  const outside =
    seen.outside === 'answered'
      ? hooks.ok(out, `${host} answers`)
      : hooks.broken(
          out,
          `${host}: ${seen.outside === 'blocked' ? 'its address is not public' : seen.outside.failure}`,
          `curl -i ${seen.outsideUrl}   # let workers out to port 443`,
        )
  const within = 'way to the inside'
  const closed = hooks.ok(within, 'addresses of this machine are refused')
  if (seen.inside === 'blocked') return [outside, closed]
  const fix = 'ALLOW_PRIVATE_NETWORKS=false'
  const found = 'webhooks may reach addresses of this machine and its network'
  return [
    outside,
    seen.production ? hooks.broken(within, found, fix) : hooks.warning(within, found, fix),
  ]
}
