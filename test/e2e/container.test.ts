/**
 * Builds the image of the Dockerfile with buildah on a Debian that mmdebstrap makes, and then sends a mail and a
 * payment through the containers. The test runs only as root, with `CONTAINER=1 npm test -- e2e/container`. The
 * containers are isolated only by chroot, so the test checks neither networks nor read-only root file systems.
 */
import { expect, test } from 'bun:test'
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import nodemailer from 'nodemailer'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { parse } from 'yaml'
import { generateKey } from '../../shared/apiKey.ts'
import { ALL_SECRETS, readBy, SECRETS_OF, type Secret } from '../../shared/config/secrets.ts'
import { devnetClient } from '../../workers/devnet/contracts.ts'
import { startDevnet } from '../../workers/devnet/devnet.ts'
import { changeProject } from '../support/changeProject.ts'
import { createTestDatabase } from '../support/database/database.ts'
import { freePort, printed, startCommand } from '../support/process/process.ts'
import { createClient } from '../support/service.ts'
import { pay, payTo, RESOURCE, redeemToEnd, registerEndpoint } from '../support/till/till.ts'
import { waitFor } from '../support/waitFor.ts'

const ROOT = join(import.meta.dir, '../..')
const PARTS = [
  'migrate',
  'api',
  'smtp',
  'inbound',
  'outbound',
  'webhooks',
  'vault',
  'purse',
  'payments',
] as const
type Part = (typeof PARTS)[number]
const compose = parse(readFileSync(join(ROOT, 'compose.yaml'), 'utf8'), { merge: true })

test('compose.yaml gives each part of the service only the secrets that this part reads', () => {
  const services: Record<string, { command?: string[]; environment?: Record<string, string> }> =
    compose.services
  const all: readonly string[] = ALL_SECRETS
  for (const part of PARTS) {
    const { environment = {} } = services[part]!
    const given = Object.keys(environment).filter((name) => all.includes(name))
    expect([part, ...given.toSorted()]).toEqual([part, ...readBy(part).toSorted()])
  }
})

test('each part in compose.yaml reads the settings in settings.env, if the operator has written this file', () => {
  for (const part of PARTS)
    expect([part, compose.services[part].env_file]).toEqual([
      part,
      [{ path: 'settings.env', required: false }],
    ])
  expect(readFileSync(join(ROOT, '.gitignore'), 'utf8')).toMatch(/^\.env\nsettings\.env$/m)
})

test('the API and the SMTP listener trust the client address in Caddy’s header, so that rate limits tell clients apart', () => {
  const caddyfile = readFileSync(join(ROOT, 'deploy/caddy/Caddyfile'), 'utf8')
  expect(caddyfile).toContain('reverse_proxy /v0/inbound/* {$PURSER_INBOUND')
  for (const part of ['api', 'smtp'])
    expect([part, compose.services[part].environment]).toEqual([
      part,
      expect.objectContaining({
        TRUSTED_PROXIES: expect.stringMatching(/^\$\{TRUSTED_PROXIES:-}$/),
      }),
    ])
  const page = readFileSync(join(ROOT, 'docs/going-live.md'), 'utf8')
  expect(page).toMatch(/TRUSTED_PROXIES=127\.0\.0\.1.*>> \/etc\/purser\/common\.env/)
})

test('the profile caddy of compose.yaml copies the mail domain’s certificate into the folder of the SMTP listener', () => {
  const { caddy, certificate, smtp } = compose.services
  expect([caddy.profiles, certificate.profiles]).toEqual([['caddy'], ['caddy']])
  for (const volume of [...caddy.volumes, ...certificate.volumes]) {
    const [source] = volume.split(':')
    const isKnown = source.startsWith('./')
      ? existsSync(join(ROOT, source))
      : source in compose.volumes
    expect([volume, isKnown]).toEqual([volume, true])
  }
  // The container image of Caddy keeps its files in the folder /data/caddy, so the certificate must be copied from this
  // folder.
  expect(certificate.command.join(' ')).toContain('"$$MAIL_DOMAIN" /data/caddy /tls 10001:10001')
  expect(smtp.volumes).toContain('tls:/tls:ro')
  expect(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')).toContain('USER 10001:10001')
})

test('the profile sell of compose.yaml listens on all addresses, and its health check sends a request to the sell program', () => {
  const { sell, api } = compose.services
  expect([sell.profiles, api.profiles]).toEqual([['sell'], undefined])
  expect(sell.command).toEqual(expect.arrayContaining(['--host', '0.0.0.0']))
  // A program that does not use the database must not get the address of the database.
  expect(Object.keys(sell.environment)).toEqual(['PURSER_URL', 'PURSER_API_KEY'])
  expect(sell.ports).toEqual(['127.0.0.1:4402:4402'])
  // No seller can sell a path with `%2f` (test/api/sell/sell.test.ts), so a health check of this path always gets the
  // status 400.
  expect(sell.healthcheck.test.at(-1)).toContain("127.0.0.1:4402/%2f')).status === 400")
})

const missing = ['buildah', 'mmdebstrap'].filter((tool) => Bun.which(tool) === null)
const reason =
  process.env.CONTAINER !== '1'
    ? 'CONTAINER=1 is not set'
    : missing.length > 0
      ? `there is no ${missing.join(' and no ')}`
      : null
if (reason !== null) process.stderr.write(`SKIPPED: the test of the container: ${reason}\n`)

test.skipIf(reason !== null)(
  'containers of the image receive a mail and a payment, and run as an unprivileged user',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'purser-container-'))
    await using stack = new AsyncDisposableStack()
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const store = ['--root', join(folder, 'store'), '--runroot', join(folder, 'run')]
    const buildah = (...args: string[]) => run('buildah', ...store, ...args)
    makeBases(folder, buildah)
    buildah(
      ...['build', '--isolation=chroot', '--pull-never', '--format=docker', '--tag=purser'],
      ...['--build-arg=BUILD_BASE=localhost/build-base', '--build-arg=RUN_BASE=localhost/run-base'],
      ROOT,
    )
    const image = JSON.parse(buildah('inspect', '--type=image', 'purser')).Docker.config
    expect(image.User).toBe('10001:10001')
    expect(image.Healthcheck.Test[0]).toBe('CMD')

    const database = stack.use(await createTestDatabase())
    const devnet = await startDevnet({
      port: 0,
      stateFile: join(folder, 'chain'),
      log: { info() {}, warn() {} },
    })
    stack.defer(() => devnet.stop())
    const [port, smtpPort, key] = [await freePort(), await freePort(), generateKey('project')]
    const gasKey = generatePrivateKey()
    const { address } = privateKeyToAccount(gasKey)
    await devnetClient(devnet.rpcUrl).setBalance({ address, value: 10n ** 18n })
    const secrets = secretsOf(devnet.rpcUrl, gasKey)
    const start = async (part: Part, more: Record<string, string> = {}) => {
      const container = buildah('from', 'purser').trim()
      const env = {
        DATABASE_URL: database.url,
        MAIL_DOMAIN: 'mail.test',
        BASE_URL: 'https://purser.example.com',
        PORT: String(port),
        SMTP_PORT: String(smtpPort),
        HEALTH_PORT: String(await freePort()),
        ...Object.fromEntries(SECRETS_OF[part].map((name) => [name, secrets[name]])),
        ...more,
      }
      return startCommand(
        [
          ...['buildah', ...store, 'run', '--isolation=chroot'],
          ...Object.entries(env).map(([name, value]) => `--env=${name}=${value}`),
          ...[container, '--', 'bun', ...(compose.services[part].command as string[])],
        ],
        {},
      )
    }
    const migration = await start('migrate', { BOOTSTRAP_PROJECT_KEY: key })
    expect([await migration.exited, migration.stderr()]).toEqual([0, ''])
    for (const part of PARTS.slice(1)) {
      const more = part === 'outbound' ? { SMTP_RELAY_URL: 'direct' } : {}
      const started = stack.use(await start(part, more))
      await printed(started, /"msg":"ready"/)
    }
    const script = await fetch(`http://127.0.0.1:${port}/console/assets/app.js`)
    expect([script.status, (await script.text()).length > 10_000]).toEqual([200, true])
    const agent = createClient(`http://127.0.0.1:${port}`, key)
    const mail = nodemailer.createTransport({ host: '127.0.0.1', port: smtpPort, ignoreTLS: true })
    await mail.sendMail({ from: 'ada@x.test', to: 'agent@mail.test', subject: 'Hi', text: 'x' })
    const [message] = await waitFor('the mail', async () => {
      const { body } = await agent.get('/v0/messages')
      return body.count > 0 ? body.messages : null
    })
    expect(message.subject).toBe('Hi')
    const projectId = (await agent.get('/v0/whoami')).body.projectId
    await changeProject(database.pool, projectId, { payTo, paymentsEnabled: true })
    await registerEndpoint(database.pool, { projectId, resource: RESOURCE })
    const { body } = await redeemToEnd(agent, (await pay()).header)
    expect(body).toMatchObject({ ok: true })
  },
  900_000,
)

function run(program: string, ...args: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([program, ...args])
  if (exitCode !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`)
  return stdout.toString()
}

/**
 * Makes two container base images: `run-base`, which holds only Debian, and `build-base`, which also has Node, npm and
 * the certificates of this machine.
 */
function makeBases(folder: string, buildah: (...args: string[]) => string): void {
  const tar = join(folder, 'debian.tar')
  run('mmdebstrap', '--variant=minbase', '--include=ca-certificates', 'bookworm', tar)
  const base = buildah('from', 'scratch').trim()
  buildah('add', base, tar, '/')
  buildah('commit', base, 'run-base')
  const build = buildah('from', 'run-base').trim()
  const node = realpathSync(Bun.which('node')!)
  const npm = join(dirname(realpathSync(Bun.which('npm')!)), '..')
  const files = join(folder, 'node')
  cpSync(node, join(files, 'usr/bin/node'))
  cpSync(npm, join(files, 'usr/lib/node_modules/npm'), { recursive: true })
  const certificates = '/etc/ssl/certs/ca-certificates.crt'
  cpSync(certificates, join(files, certificates), { dereference: true })
  buildah('copy', build, files, '/')
  const link = (name: string) => `ln -s ../lib/node_modules/npm/bin/${name}-cli.js /usr/bin/${name}`
  buildah('run', '--isolation=chroot', build, '--', 'sh', '-c', `${link('npm')}; ${link('npx')}`)
  buildah('config', `--env=NODE_EXTRA_CA_CERTS=${certificates}`, build)
  buildah('commit', build, 'build-base')
}

function secretsOf(rpcUrl: string, gasKey: string): Record<Secret, string> {
  const seed = (id: string) => `${id}:${Buffer.alloc(32, id).toString('base64')}`
  return {
    MASTER_KEYS: seed('one'),
    RECEIPT_SIGNING_KEYS: seed('receipts'),
    SETTLEMENT_KEYS: gasKey,
    RPC_URL: rpcUrl,
    SMTP_RELAY_URL: 'direct',
  }
}
