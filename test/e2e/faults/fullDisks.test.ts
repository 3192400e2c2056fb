import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import nodemailer from 'nodemailer'
import { generateKey } from '../../../shared/apiKey.ts'
import { testWhole } from '../../support/database/extent.ts'
import { freePort, printed, startProcess } from '../../support/process/process.ts'
import { createClient, deliverMail, messagePath } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

function canWrite(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) > 0
  } catch {
    return false
  }
}

/** Mounts a separate file system that is so small that the test can fill it. */
function mountSmallDisk(megabytes: number) {
  const path = mkdtempSync(join(tmpdir(), 'purser-disk-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path])
  return {
    path,
    isMounted: status === 0,
    /** Fills the disk completely, including the space that other processes free in the meantime. */
    fill() {
      const filler = openSync(join(path, 'filler'), 'a')
      try {
        for (let size = 1024 * 1024; size >= 4096; size /= 2) {
          while (canWrite(filler, size));
        }
      } finally {
        closeSync(filler)
      }
    },
    clear: () => rmSync(join(path, 'filler'), { force: true }),
    [Symbol.dispose]() {
      if (status === 0) spawnSync('umount', ['-l', path])
      rmSync(path, { recursive: true, force: true })
    },
  }
}

const canMount = () => {
  using disk = mountSmallDisk(1)
  return disk.isMounted
}
const isPossible = process.platform === 'linux' && existsSync('/bin/mount') && canMount()
if (!isPossible) {
  process.stderr.write('SKIPPED: the test of full disks, because mounting a tmpfs needs root\n')
}

testWhole.skipIf(!isPossible)(
  'a full disk is answered 452 and 503 and named by /readyz, and no acknowledged data is lost',
  async () => {
    using disk = mountSmallDisk(400)
    const [port, smtpPort] = [await freePort(), await freePort()]
    const key = generateKey('project')
    await using service = startProcess('api/start.ts', {
      PORT: String(port),
      SMTP_PORT: String(smtpPort),
      DEVNET_PORT: '0',
      DATA_DIR: join(disk.path, 'data'),
      BOOTSTRAP_PROJECT_KEY: key,
      RATE_LIMIT_REQUESTS: '0',
      LOG_LEVEL: 'warn',
    })
    await printed(service, /Purser is running/)
    const agent = createClient(`http://127.0.0.1:${port}`, key)
    const readyz = async () => (await agent.get('/readyz').catch(() => null))?.body
    await waitFor('everything to be ready', async () => (await readyz())?.status === 'ready')

    const acknowledged: string[] = []
    const stop = { now: false }
    let refused: unknown
    const sending = (async () => {
      const transport = nodemailer.createTransport({
        host: '127.0.0.1',
        port: smtpPort,
        ignoreTLS: true,
      })
      for (let n = 0; !stop.now; n++) {
        const messageId = `<${n}@full.test>`
        const text = 'x'.repeat(20_000)
        await transport
          .sendMail({ from: 'a@x.test', to: 'agent@mail.localhost', text, messageId })
          .then(
            () => acknowledged.push(messageId),
            (error) => {
              refused = error
            },
          )
      }
      transport.close()
    })()
    const storing = (async () => {
      let last: { status: number; n: number } = { status: 0, n: 0 }
      let stored = -1
      for (let n = 0; !stop.now; n++) {
        const put = await agent
          .put('/v0/vault/full', { type: 'API_KEY', data: { key: `${n} ${'y'.repeat(10_000)}` } })
          .catch(() => ({ status: 0 }))
        last = { status: put.status, n }
        if (put.status === 200) stored = n
        else expect([0, 503]).toContain(put.status)
      }
      return { last, stored }
    })()
    await waitFor('some mail to be acknowledged', () => acknowledged.length > 5)

    disk.fill()
    await waitFor('mail to be refused', () => refused !== undefined)
    expect(refused).toMatchObject({ responseCode: 452 })
    await waitFor('the API to answer 503', async () => {
      const { status } = await agent
        .put('/v0/vault/other', { type: 'API_KEY', data: { key: 'z'.repeat(60_000) } })
        .catch(() => ({ status: 0 }))
      return status === 503
    })
    const named = await waitFor('/readyz to name the full disk', async () => {
      const checks = (await readyz())?.checks ?? {}
      return Object.values(checks).some((check) => /full|unreachable/.test(String(check))) && checks
    })
    expect(named).toBeTruthy()
    await printed(service, /full|No space left/i)

    disk.clear()
    refused = undefined
    await waitFor('everything to be ready again', async () => (await readyz())?.status === 'ready')
    const before = acknowledged.length
    await waitFor('mail to be acknowledged again', () => acknowledged.length > before)
    stop.now = true
    await sending
    const { stored } = await storing
    expect(stored).toBeGreaterThan(0)
    await deliverMail(smtpPort, {
      from: 'a@x.test',
      to: 'agent@mail.localhost',
      text: 'x',
      messageId: '<last@full.test>',
    })
    for (const messageId of [...acknowledged, '<last@full.test>']) {
      await waitFor(messageId, async () => (await agent.get(messagePath(messageId))).status === 200)
    }
    const { body } = await agent.get('/v0/vault/full')
    expect(Number(body.data.key.split(' ')[0])).toBeGreaterThanOrEqual(stored)
  },
)
