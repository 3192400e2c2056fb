/** Tests /readyz and /metrics while the event loop of a process is blocked. */
import { expect, test } from 'bun:test'
import { printed, startProcess } from '../../support/process/process.ts'
import { startTestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

type Ready = { status: string; checks: Record<string, string> }
const readyOf = async (url: string): Promise<Ready> =>
  (await (await fetch(`${url}/readyz`)).json()) as Ready

test('if the event loop of a process was blocked for a second, /readyz and /metrics of the process report this', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  // Earlier tests may have blocked the process, so this test waits until the process is free.
  await waitFor(
    'a free process',
    async () => (await readyOf(service.url)).checks.eventLoops === 'ok',
  )
  const end = performance.now() + 1_200
  while (performance.now() < end);
  const { status, checks } = await waitFor('a late timer', async () => {
    const now = await readyOf(service.url)
    return now.checks.eventLoops === 'ok' ? null : now
  })
  expect(checks.eventLoops).toBe('blocked: this process')
  expect(status).toBe('degraded')
  const body = await (
    await fetch(`${service.url}/metrics`, {
      headers: { authorization: `Bearer ${service.platform.key}` },
    })
  ).text()
  const [, seconds] = /^purser_event_loop_delay_seconds\{.*part="api".*\} (\S+)$/m.exec(body) ?? []
  expect(Number(seconds)).toBeGreaterThan(1)
})

test('while the event loop of a worker pool is blocked, /readyz reports this pool by its name', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  await using workers = startProcess(
    'workers/main.ts',
    { DATABASE_URL: service.database.url, MAIL_DOMAIN: 'mail.test' },
    ['--pool', 'vault'],
  )
  await printed(workers, /"msg":"ready"/)
  const loops = async () => (await readyOf(service.url)).checks.eventLoops
  expect(await loops()).not.toContain('vault')
  workers.child.kill('SIGSTOP')
  await waitFor('the silence to be seen', async () => (await loops())?.endsWith('vault'))
  workers.child.kill('SIGCONT')
  await waitFor('the pool to go on', async () => !(await loops())?.includes('vault'))
})
