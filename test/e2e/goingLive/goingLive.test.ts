/**
 * Follows the page docs/going-live.md line by line, on a separate machine with a simulated internet (machine.ts,
 * internet.ts). At the end, a stranger's mail host obeys the MTA-STS policy of the service.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { waitFor } from '../../support/waitFor.ts'
import {
  ACME_DIRECTORY,
  CA_FILE,
  forgetPolicies,
  fund,
  PAY_TO,
  PAYER_KEY,
  publish,
  startInternet,
  writeMail,
} from './internet.ts'
import { type Machine, OWN_ADDRESS, startMachine, whyNoMachine } from './machine.ts'
import { hasLine, PAGE, readSteps, type Step } from './page.ts'
import '../../support/long.ts'

const LINES_MAX = 120
const PAGE_ADDRESS = '203.0.113.7'
const TLS = '/var/lib/purser/tls'

/**
 * Maps some lines of docs/going-live.md to the commands that this test runs instead. The page marks these lines as
 * lines that the reader must change.
 */
const OTHERWISE: [line: RegExp, instead: string][] = [
  [/^apt-get .*$/m, 'true'],
  [/^git clone .*$/m, 'cd /opt/purser'],
  [/^npx .* install .*$/m, 'true'],
  [/^set -a;/m, `echo NODE_EXTRA_CA_CERTS=${CA_FILE} >> /etc/purser/common.env\nset -a;`],
  [
    /^cp deploy\/caddy\/Caddyfile (\S+) /m,
    `(printf '{\\n\\tacme_ca ${ACME_DIRECTORY}\\n\\tacme_ca_root ${CA_FILE}\\n}\\n'; cat deploy/caddy/Caddyfile) > $1 `,
  ],
  [/0x…your-address/, PAY_TO],
  [/0x…key-of-a-wallet-with-USDC/, PAYER_KEY],
]

const reversed = (address: string) => address.split('.').toReversed().join('.')

/** Replaces the example IP address in docs/going-live.md by the address of the test machine. */
const withAddress = (text: string): string =>
  text
    .replaceAll(PAGE_ADDRESS, OWN_ADDRESS)
    .replaceAll(reversed(PAGE_ADDRESS), reversed(OWN_ADDRESS))

const here = (script: string): string =>
  OTHERWISE.reduce((text, [line, instead]) => text.replace(line, instead), withAddress(script))

const SHELL = '/root/shell'

/**
 * Runs shell commands in the state (variables and folder) that the previous commands left.
 * @returns the whole output of the commands.
 */
async function inShell(commands: string): Promise<string> {
  const { exitCode, stdout, stderr } = await machine.run(
    `set -eo pipefail
    if [ -f ${SHELL} ]; then . ${SHELL}; fi
    ${here(commands)}
    export -p > ${SHELL}; echo "cd $PWD" >> ${SHELL}`,
  )
  if (exitCode !== 0) {
    const { stdout: logs } = await machine.run('tail -n 20 /run/units/*.log /var/log/stranger.log')
    throw new Error(`exit code ${exitCode}\n${stdout}${stderr}\n${logs}`)
  }
  return stdout + stderr
}

const publishOwn = async () =>
  publish(machine, await inShell(`bun run --silent dns --bind --address ${PAGE_ADDRESS}`))

/**
 * Does the work of other people (a buyer, a funder and a DNS provider) before or after a step of docs/going-live.md.
 */
const before = async ({ script }: Step) => {
  if (script.includes('/messages/wait')) await writeMail(machine, 'buyer-bot@mail.example.com', '1')
}
const after = async ({ script }: Step, printed: string) => {
  const [wallet] = /0x[0-9a-fA-F]{40}(?= needs ether)/.exec(printed) ?? []
  if (wallet !== undefined) await fund(machine, wallet)
  if (script.includes('bun run dns')) await publishOwn()
}

const reason = whyNoMachine()
if (reason !== null) process.stderr.write(`SKIPPED: docs/going-live.md: ${reason}\n`)
const testHere = test.skipIf(reason !== null)

let machine: Machine
beforeAll(async () => {
  if (reason !== null) return
  machine = await startMachine()
  await startInternet(machine)
  await machine.must(
    `version=$(ls /usr/lib/postgresql | tail -n 1); rm -rf /var/lib/postgresql/* /etc/postgresql/*
    pg_createcluster "$version" main > /dev/null && pg_ctlcluster "$version" main start
    printf '#!/bin/sh\\nexec /opt/purser/node_modules/.bin/bun /opt/purser/test/e2e/goingLive/systemctl.ts "$@"\\n' > /usr/local/bin/systemctl
    chmod +x /usr/local/bin/systemctl`,
  )
}, 180_000)
afterAll(() => machine?.[Symbol.dispose]())

test(`the page docs/going-live.md has at most ${LINES_MAX} lines`, () => {
  const lines = readFileSync(PAGE, 'utf8').trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(LINES_MAX)
})

for (const [at, step] of readSteps().entries()) {
  testHere(`${step.title}, block ${at + 1}: ${step.script.split('\n')[0]}`, async () => {
    await before(step)
    const printed = await inShell(step.script)
    for (const form of step.prints) {
      const isPrinted = hasLine(printed, withAddress(form))
      expect([form, isPrinted ? 'is printed' : printed]).toEqual([form, 'is printed'])
    }
    await after(step, printed)
  })
}

testHere(
  'the answer reaches the stranger over TLS, as the policy of the stranger demands',
  async () => {
    const [mail] = await waitFor('the answer', async () => {
      const { stdout } = await machine.run('cat /var/mail/you')
      return stdout.includes('Subject: Good morning') ? [stdout] : null
    })
    expect(mail).toContain('with ESMTPS')
    expect(mail).toContain('DKIM-Signature: ')
    const { stdout: log } = await machine.run('cat /run/units/purser-workers@outbound.service.log')
    expect(log).toMatch(/"host":"mx.example.org","tls":"TLSv1.3","mtaSts":"enforce"/)
  },
)

const strangersLog = async () => (await machine.run('cat /var/log/stranger.log')).stdout
const count = async (pattern: RegExp) => [...(await strangersLog()).matchAll(pattern)].length
const serial = async () =>
  machine.must(
    'echo QUIT | openssl s_client -starttls smtp -connect mail.example.com:25 2> /dev/null | openssl x509 -noout -serial',
  )

testHere(
  'with MTA_STS=enforce the stranger delivers only to a host with a trusted certificate of our name',
  async () => {
    await inShell(
      'sed -i s/MTA_STS=testing/MTA_STS=enforce/ /etc/purser/common.env && systemctl restart purser-api && export MTA_STS=enforce',
    )
    await publishOwn()
    await forgetPolicies(machine)
    await waitFor('the policy', async () => {
      const { stdout } = await machine.run(
        'curl -fsS https://mta-sts.mail.example.com/.well-known/mta-sts.txt',
      )
      return stdout.includes('mode: enforce')
    })
    await writeMail(machine, 'buyer-bot@mail.example.com', '2')
    await waitFor('a verified connection', () => count(/Verified TLS connection established/g))

    // An attacker between the stranger's host and the service has a certificate from another authority, so the
    // stranger's host must not deliver the mail.
    await machine.must(
      `pkill -f '[s]ystemctl start purser-certificate' || true; cp -a ${TLS} ${TLS}.kept
      openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=mail.example.com -keyout ${TLS}/key.pem -out ${TLS}/cert.pem 2> /dev/null
      chown purser ${TLS}/*.pem`,
    )
    const foreign = await machine.must(`openssl x509 -noout -serial -in ${TLS}/cert.pem`)
    await waitFor('the foreign certificate', async () => (await serial()) === foreign)
    const sent = await count(/status=sent \(250 OK/g)
    await writeMail(machine, 'buyer-bot@mail.example.com', '3')
    await waitFor('a deferral', () => count(/Server certificate not trusted|not verified/g))
    expect(await count(/status=sent \(250 OK/g)).toBe(sent)

    await inShell(
      'systemctl start purser-certificate && systemctl enable --now purser-certificate.timer',
    )
    await waitFor('the delayed mail', async () => (await count(/status=sent \(250 OK/g)) > sent)
  },
)

testHere('the listener uses a renewed certificate without a restart', async () => {
  const former = await serial()
  await machine.must(
    'rm -rf /var/lib/caddy/.local/share/caddy/certificates/*/mail.example.com && systemctl restart caddy',
  )
  await waitFor('another certificate', async () => ![former, ''].includes(await serial()), 150_000)
  const { stdout: log } = await machine.run('cat /run/units/purser-smtp.service.log')
  expect(log.match(/"msg":"ready"/g)).toHaveLength(1)
})
