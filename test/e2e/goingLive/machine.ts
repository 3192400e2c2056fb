/**
 * Starts a separate machine for one test, built from Linux namespaces. The machine has a copy of this system, and each
 * change stays in the copy. A virtual network cable connects it to the simulated internet. The test must run as root
 * and with the right to create namespaces.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitFor } from '../../support/waitFor.ts'

const ROOT = join(import.meta.dir, '../../..')
/**
 * The following addresses are public, because the service refuses to connect to private addresses. No packet leaves the
 * network namespaces of the test.
 */
export const OWN_ADDRESS = '93.184.215.7'
export const STRANGER_ADDRESS = '93.184.215.9'
export const SERVICES_ADDRESS = '93.184.215.10'
const MEMORY = '3g'
/**
 * Holds the root directory of the simulated machine's copy of the operating system. Only the mount namespace of this
 * machine shows the copy.
 */
const COPY = '/mnt/root'

const SETUP = `
set -e
mount --make-rprivate /
mount -t tmpfs -o size=${MEMORY} tmpfs /mnt
mkdir /mnt/upper /mnt/work ${COPY}
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work ${COPY}
mount --rbind /dev ${COPY}/dev
mount --rbind /sys ${COPY}/sys
mount -t proc proc ${COPY}/proc
mount -t tmpfs tmpfs ${COPY}/run
mount -t tmpfs tmpfs ${COPY}/tmp
chmod 1777 ${COPY}/tmp
mkdir -p ${COPY}/opt/purser/node_modules
(cd ${ROOT} && git ls-files -co --exclude-standard | tar -c --no-recursion -T - 2>/dev/null | tar -x -C ${COPY}/opt/purser) || true
mount --bind ${ROOT}/node_modules ${COPY}/opt/purser/node_modules
rm -rf ${COPY}/etc/purser ${COPY}/var/lib/purser
rm -f ${COPY}/etc/resolv.conf
echo 'nameserver ${SERVICES_ADDRESS}' > ${COPY}/etc/resolv.conf
hostname mail.example.com
chroot ${COPY} sh -ec '
  ip link set lo up
  ip netns add stranger
  ip link add uplink type veth peer name outside
  ip link set outside netns stranger
  ip addr add ${OWN_ADDRESS}/24 dev uplink
  ip link set uplink up
  ip route add default via ${STRANGER_ADDRESS}
  ip -n stranger link set lo up
  ip -n stranger addr add ${STRANGER_ADDRESS}/24 dev outside
  ip -n stranger addr add ${SERVICES_ADDRESS}/24 dev outside
  ip -n stranger link set outside up
'
echo ready
# The first process of a namespace reaps ended processes.
while true; do sleep 3600 & wait $!; done
`

type Done = { exitCode: number; stdout: string; stderr: string }

export type Machine = Disposable & {
  /** Runs a bash script as root on the test machine. */
  run(script: string, options?: { in?: 'stranger'; timeoutMs?: number }): Promise<Done>
  /** Runs a script on the machine that must end with exit code 0. @returns the output of the script */
  must(script: string, options?: { in?: 'stranger'; timeoutMs?: number }): Promise<string>
}

/** Lists the programs that the test needs and that no npm package of the project installs. */
const PROGRAMS = [
  ...['unshare', 'nsenter', 'ip', 'setpriv', 'pg_createcluster'],
  ...['caddy', 'knotd', 'postfix', 'mta-sts-daemon'],
]

/**
 * Returns the reason why this system cannot start a separate machine. The function returns null if the system can start
 * a separate machine.
 */
export function whyNoMachine(): string | null {
  if (process.getuid?.() !== 0) return 'it needs root'
  const missing = PROGRAMS.filter((program) => Bun.which(program) === null)
  if (missing.length > 0) return `there is no ${missing.join(' and no ')}`
  const tried = Bun.spawnSync(['unshare', '--net', '--mount', '--pid', '--fork', 'true'])
  return tried.exitCode === 0 ? null : 'no namespaces can be made'
}

export async function startMachine(): Promise<Machine> {
  const holder = spawn(
    'unshare',
    ['--net', '--mount', '--pid', '--uts', '--fork', '--kill-child', 'sh', '-c', SETUP],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const printed = collect(holder)
  await waitFor('the machine', () => {
    if (holder.exitCode !== null) throw new Error(`no machine: ${printed.stderr()}`)
    return printed.stdout().includes('ready')
  })
  const [pid] = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').split(' ')
  const enter = ['nsenter', '-t', pid!, '-n', '-m', '-p', '-u', 'chroot', COPY]
  const run: Machine['run'] = async (script, { in: where, timeoutMs = 150_000 } = {}) => {
    const inside = where === undefined ? [] : ['ip', 'netns', 'exec', where]
    const [program = '', ...args] = [...enter, ...inside, 'bash', '-c', script]
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: timeoutMs })
    const output = collect(child)
    const exitCode = await new Promise<number>((resolve) =>
      // The code waits for the event `exit`, because the event `close` does not come while a background process keeps
      // the pipes open.
      child.once('exit', (code) => setImmediate(() => resolve(code ?? 1))),
    )
    const late =
      child.signalCode === null ? '' : `ended by ${child.signalCode} in ${timeoutMs} ms\n`
    return { exitCode, stdout: output.stdout(), stderr: late + output.stderr() }
  }
  return {
    run,
    async must(script, options) {
      const { exitCode, stdout, stderr } = await run(script, options)
      if (exitCode !== 0)
        throw new Error(`exit code ${exitCode} of:\n${script}\n${stdout}${stderr}`)
      return stdout
    },
    [Symbol.dispose]: () => void holder.kill('SIGKILL'),
  }
}

function collect(child: ChildProcess): { stdout: () => string; stderr: () => string } {
  const [stdout, stderr]: [string[], string[]] = [[], []]
  child.stdout!.on('data', (data) => stdout.push(String(data)))
  child.stderr!.on('data', (data) => stderr.push(String(data)))
  return { stdout: () => stdout.join(''), stderr: () => stderr.join('') }
}
