import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { type Config, ConfigError } from '../../../../shared/config/config.ts'
import type { SmtpFailure } from '../smtpOutcome.ts'

const ADVICE =
  'name its certificate or its CA in SMTP_RELAY_CA_FILE; SMTP_RELAY_TLS=off is for a relay on this machine, or without credentials'

/**
 * Returns the options of the SMTP library for TLS to the smarthost. @throws {ConfigError} if SMTP_RELAY_CA_FILE cannot
 * be used.
 */
export function relayTls({
  relayTls: mode,
  relayCaFile,
}: Pick<Config, 'relayTls' | 'relayCaFile'>) {
  const ca = relayCaFile === undefined ? null : readCertificates(relayCaFile)
  return {
    ignoreTLS: mode === 'off',
    // Without the option that requires TLS, an attacker between the two hosts could remove the relay's offer of
    // STARTTLS. The relay would then get credentials and mail in plain text.
    requireTLS: mode === 'required',
    ...(ca === null ? {} : { tls: { ca: ca.texts, checkServerIdentity: ca.check } }),
  }
}

function readCertificates(file: string) {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigError(`SMTP_RELAY_CA_FILE: must name a file that can be read (${code})`)
  }
  const texts = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  try {
    const pins = texts.map((one) => new X509Certificate(one).fingerprint256)
    if (pins.length === 0) throw new Error('no certificate')
    // If SMTP_RELAY_CA_FILE contains the certificate of the SMTP relay itself, the service trusts it whatever host name
    // the certificate has.
    const check = (host: string, peer: PeerCertificate) =>
      pins.includes(peer.fingerprint256) ? undefined : checkServerIdentity(host, peer)
    return { texts, check }
  } catch {
    throw new ConfigError('SMTP_RELAY_CA_FILE: must hold certificates in PEM form')
  }
}

const UNTRUSTED = /^(?:ETLS$|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS|HOSTNAME_MISMATCH)/

/**
 * If the SMTP relay cannot be reached over trusted TLS, returns a TLS failure in place of the SMTP failure, and a
 * reason for the log. Returns `null` for an SMTP failure that is not about trusted TLS.
 */
export function untrusted(failure: SmtpFailure): { failure: SmtpFailure; reason: string } | null {
  const cause = (failure as { cause?: { code?: string } }).cause?.code ?? ''
  const said = failure.response ?? failure.message
  // The word "certificate" counts only in an error without an SMTP reply, because a reply such as `554 gift
  // certificates are refused` is about the message and not about TLS.
  const namesCertificate = failure.response === undefined && /certificate/i.test(said)
  const isUntrusted =
    UNTRUSTED.test(failure.code ?? '') || UNTRUSTED.test(cause) || namesCertificate
  if (!isUntrusted) return null
  const error: SmtpFailure = new Error(`454 4.7.0 the relay offers no trusted TLS: ${said}`)
  error.code = 'ETLS'
  return { failure: error, reason: `${said}; ${ADVICE}` }
}
