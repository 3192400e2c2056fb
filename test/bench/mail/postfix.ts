/**
 * Runs a separate Postfix that delivers mail to a maildir, and the load generator of Postfix. Both programs are from
 * the Debian package `postfix`. The Postfix configuration of the system is not changed.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, startCommand } from '../../support/process/process.ts'

const SBIN = '/usr/sbin'
const MASTER = '/usr/share/postfix/master.cf.dist'
const NOBODY = 65_534
const RECIPIENT = 'bench@mail.test'

/** Tells whether Postfix is installed, and whether this user may start it. */
export const hasPostfix = (): boolean =>
  existsSync(join(SBIN, 'smtp-source')) && existsSync(MASTER) && process.getuid?.() === 0

export type Postfix = Disposable & {
  port: number
  /** Counts the messages in the maildir to which Postfix delivers. */
  delivered(): number
}

/** Starts Postfix in a temporary directory. */
export async function startPostfix(): Promise<Postfix> {
  const directory = mkdtempSync(join(tmpdir(), 'purser-bench-postfix-'))
  const port = await freePort()
  const [queue, data, mail] = ['queue', 'data', 'mail'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ]
  for (const path of [queue, data, mail]) mkdirSync(path)
  chmodSync(directory, 0o755)
  chownSync(data, idOf('postfix'), 0)
  chownSync(mail, NOBODY, NOBODY)
  copyFileSync(MASTER, join(directory, 'master.cf'))
  const master = readFileSync(MASTER, 'utf8').replace(
    /^smtp +inet.*$/m,
    `127.0.0.1:${port} inet n - n - 200 smtpd`,
  )
  writeFileSync(join(directory, 'master.cf'), master)
  writeFileSync(
    join(directory, 'main.cf'),
    `compatibility_level = 3.6
queue_directory = ${queue}
data_directory = ${data}
command_directory = ${SBIN}
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
myhostname = bench.test
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
virtual_mailbox_domains = mail.test
virtual_mailbox_base = ${mail}
virtual_mailbox_maps = inline:{${RECIPIENT}=bench/}
virtual_minimum_uid = 1
virtual_uid_maps = static:${NOBODY}
virtual_gid_maps = static:${NOBODY}
virtual_mailbox_limit = 0
message_size_limit = 36700160
smtpd_peername_lookup = no
smtpd_client_connection_count_limit = 0
maillog_file = ${directory}/log
maillog_file_prefixes = ${directory}
`,
  )
  run('postconf', ['-c', directory, '-F', '*/*/chroot=n'])
  run('postfix', ['-c', directory, 'start'])
  const inbox = join(mail, 'bench', 'new')
  return {
    port,
    delivered: () => (existsSync(inbox) ? readdirSync(inbox).length : 0),
    [Symbol.dispose]() {
      spawnSync(join(SBIN, 'postfix'), ['-c', directory, 'stop'])
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/**
 * Starts an SMTP server that discards mail. It serves as the baseline, because it does the minimum work.
 */
export async function startSmtpSink(): Promise<AsyncDisposable & { port: number }> {
  const port = await freePort()
  const sink = startCommand(
    [join(SBIN, 'smtp-sink'), '-u', 'nobody', `127.0.0.1:${port}`, '100'],
    {},
  )
  return { port, [Symbol.asyncDispose]: () => sink[Symbol.asyncDispose]() }
}

/** Delivers mail with the load generator of Postfix. @returns the duration in seconds */
export async function smtpSource(
  port: number,
  { sessions, messages, bytes }: { sessions: number; messages: number; bytes: number },
): Promise<number> {
  const startMs = performance.now()
  const source = startCommand(
    [
      ...[join(SBIN, 'smtp-source'), '-d', '-s', String(sessions), '-m', String(messages)],
      ...['-l', String(bytes), '-f', 'a@example.com', '-t', RECIPIENT, `127.0.0.1:${port}`],
    ],
    {},
  )
  const code = await source.exited
  if (code !== 0) throw new Error(`smtp-source ended with ${code}: ${source.stderr()}`)
  const seconds = (performance.now() - startMs) / 1_000
  await source[Symbol.asyncDispose]()
  return seconds
}

function run(program: string, args: string[]): void {
  const { status, stderr } = spawnSync(join(SBIN, program), args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}`)
}

const idOf = (user: string): number =>
  Number(
    /^[^:]+:[^:]*:(\d+)/m.exec(
      readFileSync('/etc/passwd', 'utf8')
        .split('\n')
        .find((line) => line.startsWith(`${user}:`)) ?? '',
    )?.[1],
  )
