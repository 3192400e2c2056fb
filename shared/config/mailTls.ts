import type { z } from 'zod'
import { ConfigError } from './configError.ts'
import type { variables } from './variables.ts'

export type RelayTls = 'required' | 'opportunistic' | 'off'
/** PEM files. */
export type CertificateFiles = { certFile: string; keyFile: string }

/** Credentials go out over TLS only, or to this machine. */
export function relayTls({
  SMTP_RELAY_URL: url = 'capture',
  SMTP_RELAY_TLS: given,
}: z.output<typeof variables>): RelayTls {
  const { username, hostname } = URL.canParse(url) ? new URL(url) : { username: '', hostname: '' }
  if (username === '') return given ?? 'opportunistic'
  if (given === undefined || given === 'required') return 'required'
  if (given === 'off' && LOOPBACK.test(hostname)) return 'off'
  throw new ConfigError(
    'SMTP_RELAY_TLS: must be required when SMTP_RELAY_URL holds credentials; off is for a relay on this machine',
  )
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i

export function smtpTls(values: z.output<typeof variables>): CertificateFiles | null {
  const { SMTP_TLS_CERT_FILE: certFile, SMTP_TLS_KEY_FILE: keyFile } = values
  if (certFile !== undefined && keyFile !== undefined) return { certFile, keyFile }
  if (certFile === undefined && keyFile === undefined) return null
  const missing = certFile === undefined ? 'SMTP_TLS_CERT_FILE' : 'SMTP_TLS_KEY_FILE'
  throw new ConfigError(`${missing}: it is missing, and must be set with its counterpart`)
}
