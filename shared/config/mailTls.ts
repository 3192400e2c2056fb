import type { z } from 'zod'
import type { variables } from './variables.ts'

export type RelayTls = 'required' | 'opportunistic' | 'off'
/** Names the PEM files of a certificate and its private key. */
export type CertificateFiles = { certFile: string; keyFile: string }

/**
 * Decides whether mail to the relay needs TLS. The service sends relay credentials only over TLS, or to a relay on this
 * machine.
 */
export function relayTls(values: Values): RelayTls {
  const given = values.SMTP_RELAY_TLS
  if (!holdsCredentials(values)) return given ?? 'opportunistic'
  return given === 'off' && isSafeRelayTls(values) ? 'off' : 'required'
}

/**
 * Tells whether the setting SMTP_RELAY_TLS protects the credentials of SMTP_RELAY_URL from a transfer in clear text.
 */
export function isSafeRelayTls(values: Values): boolean {
  const { SMTP_RELAY_TLS: given = 'required' } = values
  if (!holdsCredentials(values) || given === 'required') return true
  return given === 'off' && LOOPBACK.test(relayOf(values)!.hostname)
}

type Values = z.output<typeof variables>

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i

const relayOf = ({ SMTP_RELAY_URL: url = 'capture' }: Values): URL | null =>
  URL.canParse(url) ? new URL(url) : null
const holdsCredentials = (values: Values): boolean => (relayOf(values)?.username ?? '') !== ''

/**
 * Returns the PEM files of the certificate and its key for STARTTLS. @returns null unless the settings name both the
 * certificate file and the key file.
 */
export function smtpTls(values: Values): CertificateFiles | null {
  const { SMTP_TLS_CERT_FILE: certFile, SMTP_TLS_KEY_FILE: keyFile } = values
  return certFile === undefined || keyFile === undefined ? null : { certFile, keyFile }
}
