/** Tests the script that copies the certificate of Caddy to the SMTP listener. */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { printed, startCommand } from '../../support/process/process.ts'

const NAME = 'mail.example'

test('if copying a TLS certificate fails, the old certificate stays, and the next copy installs the new one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'purser-certificate-'))
  const [storage, taken] = [join(folder, 'caddy'), join(folder, 'tls')]
  const source = join(storage, 'certificates/acme', NAME)
  mkdirSync(source, { recursive: true })
  mkdirSync(taken)
  for (const file of ['cert.pem', 'key.pem']) writeFileSync(join(taken, file), `old ${file}`)
  const files = () => ['cert.pem', 'key.pem'].map((file) => readFileSync(join(taken, file), 'utf8'))
  try {
    writeFileSync(join(source, `${NAME}.crt`), 'new certificate')
    const owner = `${process.getuid!()}`
    const words = ['deploy/caddy/takeCertificate.sh', NAME, storage, taken, owner, '0.2']
    await using script = startCommand(['sh', ...words], {})
    // The private key of the certificate is missing here, so the script cannot copy. When the script has printed the
    // second error line, its first attempt to copy has ended.
    await printed(script, /No such file[\s\S]*No such file/)
    expect(files()).toEqual(['old cert.pem', 'old key.pem'])
    writeFileSync(join(source, `${NAME}.key`), 'new key')
    await printed(script, /took the certificate/)
    expect(files()).toEqual(['new certificate', 'new key'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
