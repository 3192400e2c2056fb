/** Starts HTTPS servers with a self-signed certificate. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { RequestListener, Server } from 'node:http'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listen } from './localServer.ts'

export type Certificate = { key: string; ca: string }

/** Makes a self-signed certificate for host names. */
export const newCertificate = (...names: string[]): Certificate =>
  makeCertificate(['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'], names)

/** Makes a self-signed certificate for host names with an RSA key. */
export const newRsaCertificate = (...names: string[]): Certificate =>
  makeCertificate(['rsa:2048'], names)

function makeCertificate(keyKind: string[], names: string[]): Certificate {
  const directory = mkdtempSync(join(tmpdir(), 'purser-tls-'))
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
  const { status, stderr } = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', ...keyKind, '-nodes'],
    ...['-keyout', key, '-out', cert, '-days', '2', '-subj', `/CN=${names[0]}`],
    ...['-addext', `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`],
  ])
  if (status !== 0) throw new Error(`openssl: ${stderr}`)
  const made = { key: readFileSync(key, 'utf8'), ca: readFileSync(cert, 'utf8') }
  rmSync(directory, { recursive: true })
  return made
}

/** Starts an HTTPS server on the loopback interface, which `closeServers` ends. @returns the port of the server */
export const serveTls = ({ key, ca }: Certificate, listener: RequestListener): Promise<number> =>
  listen(createServer({ key, cert: ca }, listener) as unknown as Server)
