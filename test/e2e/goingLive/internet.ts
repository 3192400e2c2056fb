/**
 * Simulates the internet to which the test machine is connected: DNS names, a CA, the Base chain, and the mail host of
 * a stranger.
 */
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import { waitFor } from '../../support/waitFor.ts'
import { type Machine, OWN_ADDRESS, SERVICES_ADDRESS, STRANGER_ADDRESS } from './machine.ts'

const STORAGE = '/var/stranger/caddy'
const CA_SOURCE = `${STORAGE}/pki/authorities/local/root.crt`
/** Holds the path of the CA certificate that the test machine must trust. */
export const CA_FILE = '/usr/local/share/ca-certificates/stranger.crt'
export const ACME_DIRECTORY = 'https://ca.example.net/acme/local/directory'
/** Lists the mail hosts to whose port 25 `bun run doctor` tries to connect. */
const RECEIVERS = ['gmail.com', 'outlook.com', 'yahoo.com']

const ZONE = `
$TTL 1
. SOA ns.example.net. hostmaster.example.net. 1 60 60 60 1
. NS ns.example.net.
ns.example.net. A ${SERVICES_ADDRESS}
ca.example.net. A ${SERVICES_ADDRESS}
base.example.com. A ${SERVICES_ADDRESS}
www.cloudflare.com. A ${SERVICES_ADDRESS}
shop.mail.example.com. A ${OWN_ADDRESS}
7.215.184.93.in-addr.arpa. PTR mail.example.com.
9.215.184.93.in-addr.arpa. PTR mx.example.org.
mx.example.org. A ${STRANGER_ADDRESS}
example.org. MX 10 mx.example.org.
example.org. TXT "v=spf1 mx -all"
_dmarc.example.org. TXT "v=DMARC1; p=reject"
_mta-sts.example.org. TXT "v=STSv1; id=1"
mta-sts.example.org. A ${STRANGER_ADDRESS}
${RECEIVERS.map((name) => `${name}. MX 10 mx.example.org.`).join('\n')}
`

/** Lists the hosts for which the Caddy of the simulated internet has certificates. */
const TLS_HOSTS = [
  ...['ca.example.net', 'base.example.com', 'www.cloudflare.com'],
  ...['mx.example.org', 'mta-sts.example.org'],
]
const CADDY_LOG = '/run/units/stranger-caddy.log'
const RELOAD_AFTER_FAILURE = `grep -q 'will retry' ${CADDY_LOG} && truncate -s 0 ${CADDY_LOG} &&
  HOME=/var/stranger caddy reload --force --config /var/stranger/Caddyfile --adapter caddyfile`

const CADDYFILE = `
{
	storage file_system ${STORAGE}
	local_certs
	skip_install_trust
	admin localhost:2020
	default_bind ${SERVICES_ADDRESS} ${STRANGER_ADDRESS}
}
ca.example.net {
	acme_server
}
base.example.com {
	rewrite * /
	reverse_proxy 127.0.0.1:8545
}
www.cloudflare.com {
	respond "ip={remote_host}\\n"
}
mta-sts.example.org {
	root * /var/stranger/policy
	file_server
}
mx.example.org {
	respond ok
}
`

const KNOT = `
server:
  listen: ${SERVICES_ADDRESS}@53
  rundir: /run/knot
database:
  storage: /run/knot/db
zone:
  - domain: .
    file: /run/knot/root.zone
    semantic-checks: false
`

const POSTFIX = {
  compatibility_level: '3.6',
  myhostname: 'mx.example.org',
  myorigin: 'example.org',
  mydestination: 'example.org',
  inet_interfaces: `${STRANGER_ADDRESS}, 127.0.0.1`,
  inet_protocols: 'ipv4',
  smtp_bind_address: STRANGER_ADDRESS,
  maillog_file: '/var/log/stranger.log',
  smtpd_tls_cert_file: '/etc/postfix/cert.pem',
  smtpd_tls_key_file: '/etc/postfix/key.pem',
  smtpd_tls_security_level: 'may',
  smtpd_tls_received_header: 'yes',
  smtp_tls_security_level: 'may',
  smtp_tls_loglevel: '1',
  smtp_tls_CAfile: '/etc/ssl/certs/ca-certificates.crt',
  smtp_tls_policy_maps: 'socketmap:inet:127.0.0.1:8461:postfix',
  // Postfix loses track of a mail if the next attempt comes within a second of the failed attempt, so the pause between
  // attempts is longer.
  minimal_backoff_time: '3s',
  maximal_backoff_time: '3s',
  queue_run_delay: '2s',
}

const DEVNET = `
import { startDevnet } from '/opt/purser/workers/devnet/devnet.ts'
await startDevnet({ port: 8545, stateFile: '/var/stranger/chain', log: { info() {}, warn() {} } })
`

const write = (file: string, text: string) =>
  `cat > ${file} <<'END_OF_FILE'\n${text}\nEND_OF_FILE\n`
/**
 * Returns a shell command that starts a background program, which keeps running after the script has ended. Its output
 * goes to a file.
 */
const background = (name: string, command: string) =>
  `(${command}) < /dev/null > /run/units/${name}.log 2>&1 &\n`

const startPolicies = (name: string) =>
  background(name, 'mta-sts-daemon -c /etc/mta-sts-daemon.yml')

/** Starts the simulated internet beside the machine, and makes the machine trust its CA. */
export async function startInternet(machine: Machine): Promise<void> {
  const stranger = { in: 'stranger' } as const
  await machine.must(
    `mkdir -p /run/units /run/knot/db /var/stranger ${STORAGE}
    ${write('/etc/knot/knot.conf', KNOT)}
    ${write('/run/knot/root.zone', ZONE)}
    ${write('/var/stranger/Caddyfile', CADDYFILE)}
    ${write('/var/stranger/devnet.ts', DEVNET)}
    mkdir -p /var/stranger/policy/.well-known
    printf 'version: STSv1\\r\\nmode: enforce\\r\\nmx: mx.example.org\\r\\nmax_age: 86400\\r\\n' > /var/stranger/policy/.well-known/mta-sts.txt
    ${background('knot', 'knotd -c /etc/knot/knot.conf')}
    ${background('stranger-caddy', 'HOME=/var/stranger caddy run --config /var/stranger/Caddyfile --adapter caddyfile')}
    ${background('devnet', '/opt/purser/node_modules/.bin/bun /var/stranger/devnet.ts')}`,
    stranger,
  )
  const certificateOf = (host: string) => `${STORAGE}/certificates/local/${host}/${host}`
  const certificate = certificateOf('mx.example.org')
  const wanted = [CA_SOURCE, ...TLS_HOSTS.map((host) => `${certificateOf(host)}.key`)]
  await waitFor('the stranger to have its certificates', async () => {
    const { exitCode } = await machine.run(wanted.map((file) => `test -s ${file}`).join(' && '))
    // At its start, Caddy also removes empty folders from its storage. If Caddy removes the folder of a new
    // certificate, it requests this certificate again only a minute later, so the test reloads Caddy.
    if (exitCode !== 0) await machine.run(RELOAD_AFTER_FAILURE, stranger)
    return exitCode === 0
  })
  await machine.must(
    `install -m 644 ${CA_SOURCE} ${CA_FILE} && update-ca-certificates > /dev/null 2>&1
    cp ${certificate}.crt /etc/postfix/cert.pem && cp ${certificate}.key /etc/postfix/key.pem
    printf 'host: 127.0.0.1\\nport: 8461\\ncache:\\n  type: internal\\ndefault_zone:\\n  strict_testing: false\\n  timeout: 10\\n' > /etc/mta-sts-daemon.yml
    ${startPolicies('mta-sts')}
    touch /etc/postfix/main.cf
    postconf -e ${Object.entries(POSTFIX)
      .map(([name, value]) => `'${name}=${value}'`)
      .join(' ')}
    postconf -F '*/*/chroot = n'
    useradd --create-home you && newaliases
    cp /etc/resolv.conf /var/spool/postfix/etc/resolv.conf 2>/dev/null || true
    postfix start > /run/units/postfix.log 2>&1 || { cat /run/units/postfix.log; exit 1; }`,
    stranger,
  )
}

/** Publishes the given lines of a DNS zone file, in addition to the lines of ZONE. */
export async function publish(machine: Machine, lines: string): Promise<void> {
  await machine.must(`${write('/run/knot/root.zone', `${ZONE}${lines}`)}
    knotc -c /etc/knot/knot.conf zone-reload . > /dev/null`)
}

/** Gives ether to an address on the simulated chain. */
export async function fund(machine: Machine, address: string): Promise<void> {
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'anvil_setBalance',
    params: [address, '0xde0b6b3a7640000'],
  }
  await machine.must(
    `curl -fsS -H 'Content-Type: application/json' -d '${JSON.stringify(call)}' https://base.example.com/`,
  )
}

export const PAYER_KEY = DEVNET_ACCOUNTS.payer.privateKey
export const PAY_TO = DEVNET_ACCOUNTS.payTo.address

/** Sends a mail from the stranger's mail host. */
export const writeMail = (machine: Machine, to: string, subject: string) =>
  machine.must(
    `printf 'From: you@example.org\\nTo: ${to}\\nSubject: ${subject}\\n\\nGood morning.\\n' | sendmail -f you@example.org ${to}`,
    { in: 'stranger' },
  )

/** Makes the stranger's mail host fetch each MTA-STS policy again. */
export async function forgetPolicies(machine: Machine): Promise<void> {
  await machine.must("pkill -KILL -f '[m]ta-sts-daemon'")
  await machine.must(startPolicies('mta-sts-again'), { in: 'stranger' })
}
