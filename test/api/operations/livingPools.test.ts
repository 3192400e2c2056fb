/** Tests that /readyz, /metrics and the health report show that the last worker process has died. */
import { expect, test } from 'bun:test'
import { printed, startProcess } from '../../support/process/process.ts'
import { startTestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

test('a worker pool counts as missing after its process was killed, even if this was the last worker process', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const workersCheck = async (): Promise<string> => {
    const ready = (await (await fetch(`${service.url}/readyz`)).json()) as any
    return ready.checks.workers
  }
  const vaultPools = async (): Promise<string | undefined> => {
    const headers = { authorization: `Bearer ${service.platform.key}` }
    const text = await (await fetch(`${service.url}/metrics`, { headers })).text()
    return /^purser_pools\{.*pool="vault".*\} (\S+)$/m.exec(text)?.[1]
  }
  await using workers = startProcess(
    'workers/main.ts',
    { DATABASE_URL: service.database.url, MAIL_DOMAIN: 'mail.test' },
    ['--pool', 'vault'],
  )
  await printed(workers, /"msg":"ready"/)
  await waitFor('the pool to live', async () => !(await workersCheck()).includes('vault'))
  expect(await vaultPools()).toBe('1')
  workers.child.kill('SIGKILL')
  await waitFor('the pool to be missing', async () => (await workersCheck()).includes('vault'))
  await waitFor('the metric', async () => (await vaultPools()) === '0')
  const { body } = await service.platform.post('/v0/platform/health', {})
  expect(body.verdict).toBe('broken')
})
