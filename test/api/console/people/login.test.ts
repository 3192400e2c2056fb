import { expect, test } from 'bun:test'
import { generateKey } from '../../../../shared/apiKey.ts'
import { parseConfig } from '../../../../shared/config/config.ts'
import { bootstrap } from '../../../../sql/account/bootstrap.ts'
import { consoleClient } from '../../../support/console/consoleSession.ts'
import { startProcess } from '../../../support/process/process.ts'
import { startTestService } from '../../../support/service.ts'

const PRODUCTION = {
  NODE_ENV: 'production',
  SMTP_RELAY_URL: 'smtp://127.0.0.1:1',
  RPC_URL: 'http://127.0.0.1:1',
  SETTLEMENT_KEYS: `0x${'1'.repeat(64)}`,
  RECEIPT_SIGNING_KEYS: `a:${Buffer.alloc(32, 1).toString('base64')}`,
  MASTER_KEYS: `a:${Buffer.alloc(32, 2).toString('base64')}`,
  BOOTSTRAP_PLATFORM_KEY: generateKey('platform'),
  BOOTSTRAP_PROJECT_KEY: generateKey('project'),
}

test('the command bun run console:login prints a sign-in link, and the database stores only the hash of the link’s token', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  await using command = startProcess('api/console/loginMain.ts', {
    DATABASE_URL: service.database.url,
    BASE_URL: 'https://purser.example.com/',
  })
  expect(await command.exited).toBe(0)
  const [, token = ''] =
    /^https:\/\/purser\.example\.com\/console\/login#([\w-]{43})\nGood once, for 15 minutes\.\n$/.exec(
      command.stdout(),
    ) ?? []
  const { rows } = await service.database.pool.query('select l::text as row from console_links l')
  expect(rows).toHaveLength(1)
  expect(JSON.stringify(rows)).not.toContain(token)
  expect((await consoleClient(service.url, '').post('/sessions', { token })).status).toBe(201)
})

test('the command bun run console:login prints one line if the database is missing or a setting is wrong', async () => {
  const cases: [Record<string, string>, number, RegExp][] = [
    [
      { DATABASE_URL: 'postgres://127.0.0.1:1/none' },
      78,
      /^DATABASE_URL: no database answers at 127\.0\.0\.1:1 /,
    ],
    [{ DATABASE_URL: 'mysql://x' }, 78, /^DATABASE_URL: /],
    [{ DATA_DIR: '/nonexistent/purser' }, 78, /^DATABASE_URL: it is missing/],
  ]
  for (const [env, code, line] of cases) {
    await using failed = startProcess('api/console/loginMain.ts', env)
    expect([env, await failed.exited]).toEqual([env, code])
    expect(failed.stderr().trim()).toMatch(line)
    expect(failed.stdout()).toBe('')
  }
})

test('until somebody has signed in, the service prints a sign-in link at each start, but never in production', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const { url, pool } = service.database
  expect((await bootstrap(url, parseConfig(PRODUCTION))).signInToken).toBeNull()
  expect((await pool.query('select from console_links')).rowCount).toBe(0)
  const { signInToken } = await bootstrap(url, service.config)
  const signedIn = await consoleClient(service.url, '').post('/sessions', { token: signInToken })
  expect(signedIn.status).toBe(201)
  expect((await bootstrap(url, service.config)).signInToken).toBeNull()
})
