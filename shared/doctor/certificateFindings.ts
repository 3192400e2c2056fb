import { counted, type Finding, findingsIn, shown } from './finding.ts'

/** Describes the TLS certificate of a peer in a handshake. */
export type SeenCertificate = {
  /** Tells whether the certificate is valid for the host name of the connection. */
  fits: boolean
  /** Lists the host names that the certificate covers. */
  names: readonly string[]
  expiresAt: Date
  /** Tells whether a certificate authority of the system vouches for the certificate. */
  trusted: boolean
  /**
   * Names the organisation that issued the certificate. The name is an empty text if the certificate names no
   * organisation.
   */
  issuer: string
}

const DAY_MS = 24 * 60 * 60 * 1000
/**
 * Sets how many days before the expiry of a certificate the doctor (the service's self-check) warns, because a working
 * renewal replaces a certificate 30 days before its expiry.
 */
const DAYS_WARNING = 14
const NAMES_MAX = 3

/**
 * Judges whether peers accept a TLS certificate, and whether the certificate expires soon.
 * @param isDemanded tells whether clients refuse this server's certificate if a certificate authority that they do not
 * trust has issued it.
 * @param fix is the line in the settings with which the operator gives the server another certificate.
 */
export function judgeCertificate({
  area,
  check,
  name,
  certificate,
  now,
  isDemanded,
  fix,
}: {
  area: Finding['area']
  check: string
  name: string
  certificate: SeenCertificate
  now: Date
  isDemanded: boolean
  fix: string
}): Finding {
  const { ok, warning, broken } = findingsIn(area)
  const { fits, names, expiresAt, trusted } = certificate
  const days = Math.floor((expiresAt.getTime() - now.getTime()) / DAY_MS)
  if (days < 0) return broken(check, `it ended ${expiresAt.toISOString().slice(0, 10)}`, fix)
  if (!fits) {
    const some = names.slice(0, NAMES_MAX).map(shown).join(', ')
    return broken(check, `it is not for ${name}${some === '' ? '' : `, but for ${some}`}`, fix)
  }
  if (!trusted) {
    const found = 'it leads to no authority that others know'
    return isDemanded ? broken(check, found, fix) : warning(check, found, fix)
  }
  const left = `for ${name}, ${counted(days, 'day')} left`
  return days < DAYS_WARNING ? warning(check, left, fix) : ok(check, left)
}
