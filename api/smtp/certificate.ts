import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import type { Logger } from 'pino'
import { ConfigError } from '../../shared/config/config.ts'

/** Holds the TLS certificate and its private key for STARTTLS, as PEM texts. */
export type Certificate = { cert: Buffer; key: Buffer }

export type CertificateFiles = { certFile: string; keyFile: string }

/**
 * Sets the milliseconds between two checks of the certificate files. Certificates are renewed weeks before they expire,
 * so the checks need not be frequent.
 */
const WATCH_MS = 10_000

/**
 * Reads the certificate and its private key from their files. @throws {ConfigError} if a file is unusable, or if the
 * private key does not match the certificate.
 */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const cert = read('SMTP_TLS_CERT_FILE', certFile)
  const key = read('SMTP_TLS_KEY_FILE', keyFile)
  // The code checks the PEM texts before their use, because a TLS context would accept invalid PEM and then fail at
  // every handshake.
  const parsed = parse('SMTP_TLS_CERT_FILE', 'a certificate', () => new X509Certificate(cert))
  const privateKey = parse('SMTP_TLS_KEY_FILE', 'a private key', () => createPrivateKey(key))
  if (!parsed.checkPrivateKey(privateKey)) {
    throw new ConfigError('SMTP_TLS_KEY_FILE: must hold the key of the certificate')
  }
  return { cert, key }
}

function parse<Value>(variable: string, what: string, work: () => Value): Value {
  try {
    return work()
  } catch {
    throw new ConfigError(`${variable}: must hold ${what} in PEM form`)
  }
}

function read(variable: string, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigError(`${variable}: must name a file that can be read (${code})`)
  }
}

/**
 * Starts to use a renewed certificate without a restart of the listener. If the renewed certificate is unusable, the
 * listener keeps the old certificate and logs the error.
 * @returns a function that stops watching the certificate files.
 */
export function watchCertificate(
  files: CertificateFiles,
  use: (certificate: Certificate) => void,
  { log, everyMs = WATCH_MS }: { log: Logger; everyMs?: number },
): () => void {
  const renew = () => {
    try {
      use(readCertificate(files))
      log.info('a renewed certificate is in use')
    } catch (error) {
      // A renewal replaces the files of the certificate and of the private key one after the other. Therefore, for a
      // moment, the private key may not match the certificate.
      log.warn({ err: error }, 'the certificate could not be renewed; the old one stays')
    }
  }
  const names = [files.certFile, files.keyFile]
  for (const name of names) watchFile(name, { interval: everyMs, persistent: false }, renew)
  return () => {
    for (const name of names) unwatchFile(name, renew)
  }
}
