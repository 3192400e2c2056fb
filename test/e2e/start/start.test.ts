import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { consoleClient } from '../../support/console/consoleSession.ts'
import { testWhole } from '../../support/database/extent.ts'
import { freePort, printed, startCommand, startProcess } from '../../support/process/process.ts'
import { createClient, deliverMail, waitForMessages } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

/** Reads the API keys and the inbox address from the welcome text. */
function readWelcome(text: string) {
  const read = (pattern: RegExp) => pattern.exec(text)?.[1] ?? ''
  return {
    platformKey: read(/Platform key\s+(lopk-[0-9a-f]{64})/),
    projectKey: read(/Project key\s+(loid-[0-9a-f]{64})/),
    inbox: read(/Inbox\s+(\S+)/),
    curlLines: text.match(/^\s+curl /gm)?.length ?? 0,
  }
}

test('the command npm start starts the service, keeps data and keys over a restart, and shuts down on SIGTERM and SIGINT', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-start-'))
  const [port, smtpPort] = [await freePort(), await freePort()]
  const env = {
    PORT: String(port),
    SMTP_PORT: String(smtpPort),
    DEVNET_PORT: '0',
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
  }
  const url = `http://127.0.0.1:${port}`
  try {
    const first = startProcess('api/start.ts', env)
    await printed(first, /Try:[\s\S]*\/v0\/messages\n/)
    const welcome = readWelcome(first.stdout())
    expect(welcome).toEqual({
      platformKey: expect.stringMatching(/^lopk-/),
      projectKey: expect.stringMatching(/^loid-/),
      inbox: 'agent@mail.localhost',
      curlLines: 3,
    })
    const [, token = ''] = /Console\s+\S+\/console\/login#(\S+)/.exec(first.stdout()) ?? []
    expect((await consoleClient(url, '').post('/sessions', { token })).status).toBe(201)
    expect((await fetch(`${url}/console/assets/app.js`)).status).toBe(200)
    const agent = createClient(url, welcome.projectKey)
    // The service is `degraded` for some seconds if the start blocked an event loop, so the test waits.
    await waitFor('ready', async () => (await agent.get('/readyz')).body.status === 'ready')
    await deliverMail(smtpPort, {
      from: 'ada@example.com',
      to: welcome.inbox,
      subject: 'Hi',
      text: 'Hi.',
      messageId: '<hi@x.test>',
    })
    await waitForMessages(agent, 1)

    const twin = startProcess('api/start.ts', { ...env, PORT: '0', SMTP_PORT: '0' })
    expect(await twin.exited).toBe(78)
    expect(twin.stderr().trim()).toBe(
      `DATA_DIR: ${dataDir} is in use by another running service; stop that one, or name another folder`,
    )

    // The service accepts the last message but stops before it has parsed the message. After the next start, the inbox
    // must contain this message.
    await deliverMail(smtpPort, {
      from: 'ada@example.com',
      to: welcome.inbox,
      subject: 'Late',
      text: 'Late.',
      messageId: '<late@x.test>',
    })
    first.child.kill('SIGTERM')
    expect(await first.exited).toBe(0)
    expect(first.stderr()).toBe('')

    const second = startProcess('api/start.ts', env)
    await printed(second, /Try:[\s\S]*\/v0\/messages\n/)
    expect(readWelcome(second.stdout())).toEqual(welcome)
    // After an operator has signed in for the first time, the service makes sign-in links only on request.
    expect(second.stdout()).toMatch(/Console\s+\S+\/console {8}sign in: npm run console:login\n/)
    expect(second.stdout()).not.toContain('/console/login#')
    const items = await waitForMessages(agent, 2)
    expect(items.map((item) => item.messageId).toSorted()).toEqual(['<hi@x.test>', '<late@x.test>'])
    second.child.kill('SIGINT')
    expect(await second.exited).toBe(0)
    for (const file of readdirSync(dataDir)) {
      if (/key|password|spool/.test(file))
        expect(statSync(join(dataDir, file)).mode & 0o077).toBe(0)
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

testWhole('after its process was killed, the service starts again with the same data', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-killed-'))
  const env = {
    PORT: String(await freePort()),
    SMTP_PORT: String(await freePort()),
    DEVNET_PORT: '0',
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
  }
  try {
    const first = startProcess('api/start.ts', env)
    await printed(first, /Purser is running/)
    first.child.kill('SIGKILL')
    await first.exited
    const second = startProcess('api/start.ts', env)
    await printed(second, /Purser is running/)
    second.child.kill('SIGTERM')
    expect(await second.exited).toBe(0)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

testWhole('npm start forwards SIGTERM, and ends with exit code 0 after the drain', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-npm-'))
  const env = { PORT: '0', SMTP_PORT: '0', DEVNET_PORT: '0', DATA_DIR: dataDir, LOG_LEVEL: 'info' }
  try {
    const npm = startCommand(['npm', 'start'], env)
    await printed(npm, /Purser is running/)
    npm.child.kill('SIGTERM')
    expect(await npm.exited).toBe(0)
    expect(npm.stderr()).toContain('"service":"purser","msg":"stopped"')
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test('a wrong setting stops the start with exit code 78 and one line that names the setting', async () => {
  const cases: [string, Record<string, string>, RegExp][] = [
    ['api/start.ts', { PORT: 'many' }, /^PORT: /],
    ['api/start.ts', { PORT: '70000' }, /^PORT: /],
    [
      'api/main.ts',
      { DATABASE_URL: 'mysql://x' },
      /^DATABASE_URL: its value must be a URL that starts with postgres/,
    ],
    ['api/main.ts', { DATA_DIR: '/nonexistent/purser' }, /^DATABASE_URL: it is missing/],
    [
      'api/smtp/main.ts',
      { MAIL_DOMAIN: 'not a domain' },
      /^MAIL_DOMAIN: its value must be a domain name/,
    ],
    [
      'workers/main.ts',
      { SMTP_RELAY_URL: 'http://x' },
      /^SMTP_RELAY_URL: its value must be smtp:\/\//,
    ],
    [
      'api/start.ts',
      { BOOTSTRAP_PLATFORM_KEY: 'lopk-1' },
      /^BOOTSTRAP_PLATFORM_KEY: its value must be lopk-/,
    ],
    ['api/start.ts', { TRUSTED_PROXIES: '10.0.0.0/99' }, /^TRUSTED_PROXIES: its value must be/],
    ['api/start.ts', { NODE_ENV: 'production' }, /^SMTP_RELAY_URL: must name a smarthost/],
  ]
  await Promise.all(
    cases.map(async ([file, env, line]) => {
      const failed = startProcess(file, env)
      expect([file, env, await failed.exited]).toEqual([file, env, 78])
      const lines = failed.stderr().trimEnd().split('\n')
      expect(lines[0]).toMatch(line)
      // The service reports all wrong settings together, each on a separate line.
      for (const each of lines) expect(each).toMatch(/^[A-Z][A-Z0-9_]+: /)
    }),
  )
  for (const args of [['--pool', 'tea'], ['--concurrency', '0'], ['--colour']]) {
    const failed = startProcess('workers/main.ts', {}, args)
    expect(await failed.exited).toBe(78)
    expect(failed.stderr().trim().split('\n')).toHaveLength(1)
  }
})
