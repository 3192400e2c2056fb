/**
 * Replaces `systemctl`, because the test machine has no systemd. The replacement runs the ExecStart line of a systemd
 * unit, with the user, environment and capabilities of the unit. It has no sandbox, no start order and no restart.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'

const FOLDERS = ['/etc/systemd/system', '/lib/systemd/system']
const RUN = '/run/units'
/**
 * Sets the interval in milliseconds at which all timers of systemd units run in this test. It is shorter than the real
 * intervals of the units.
 */
const TIMER_MS = 1000

type Unit = { name: string; lines: [key: string, value: string][] }

function readUnit(given: string): Unit {
  const name = given.includes('.') ? given : `${given}.service`
  const [, template = '', instance = '', kind = ''] = /^([^@]*@)([^.]*)(\..*)$/.exec(name) ?? []
  const file = FOLDERS.flatMap((folder) => [`${folder}/${name}`, `${folder}/${template}${kind}`])
    .filter((path) => path.endsWith(kind) && !path.endsWith('/'))
    .find((path) => existsSync(path))
  if (file === undefined) throw new Error(`no unit ${name}`)
  const dropIns = FOLDERS.map((folder) => `${folder}/${name}.d`).filter((path) => existsSync(path))
  const texts = [
    file,
    ...dropIns.flatMap((folder) => readdirSync(folder).map((part) => `${folder}/${part}`)),
  ].map((path) => readFileSync(path, 'utf8').replaceAll('%i', instance))
  const lines = texts.flatMap((text) =>
    [...text.matchAll(/^([A-Z]\w+)=(.*)$/gm)].map(([, key, value]): [string, string] => [
      key!,
      value!,
    ]),
  )
  return { name, lines }
}

const all = (unit: Unit, key: string) =>
  unit.lines.filter(([name]) => name === key).map(([, value]) => value)
const last = (unit: Unit, key: string) => all(unit, key).at(-1)

function environmentOf(unit: Unit): Record<string, string> {
  const assignments = all(unit, 'Environment').flatMap((line) => line.split(' '))
  const files = all(unit, 'EnvironmentFile').flatMap((given) => {
    const file = given.replace(/^-/, '')
    if (!existsSync(file) && given.startsWith('-')) return []
    return readFileSync(file, 'utf8').split('\n')
  })
  return Object.fromEntries(
    [...assignments, ...files]
      .filter((line) => line.includes('='))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
}

/**
 * Returns the command line that a systemd unit runs. A prefix in the command line can set the user and the capabilities
 * of the unit.
 */
function commandOf(unit: Unit, line: string, env: Record<string, string>): string[] {
  const words = line
    .split(' ')
    .map((word) => word.replace(/\$\{(\w+)\}/g, (_, name) => env[name] ?? ''))
  const user = last(unit, 'User')
  if (user === undefined) return words
  const capability = last(unit, 'AmbientCapabilities')?.replace('CAP_', '+').toLowerCase()
  return [
    'setpriv',
    ...[`--reuid=${user}`, `--regid=${last(unit, 'Group') ?? user}`, '--init-groups'],
    ...(capability === undefined
      ? []
      : [`--inh-caps=${capability}`, `--ambient-caps=${capability}`]),
    ...words,
  ]
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

function optionsOf(unit: Unit) {
  const env = environmentOf(unit)
  const home = last(unit, 'User') === 'caddy' ? '/var/lib/caddy' : '/'
  return { cwd: last(unit, 'WorkingDirectory') ?? '/', env: { PATH, HOME: home, ...env } }
}

function start(name: string): number {
  if (name === 'postgresql') return postgres('start')
  const unit = readUnit(name)
  if (unit.name.endsWith('.timer')) return startTimer(unit)
  const options = optionsOf(unit)
  const [program = '', ...args] = commandOf(unit, last(unit, 'ExecStart')!, options.env)
  if (last(unit, 'Type') === 'oneshot') {
    return spawnSync(program, args, { ...options, stdio: 'inherit' }).status ?? 1
  }
  const log = openSync(`${RUN}/${unit.name}.log`, 'a')
  const child = spawn(program, args, { ...options, detached: true, stdio: ['ignore', log, log] })
  writeFileSync(`${RUN}/${unit.name}.pid`, String(child.pid))
  child.unref()
  return 0
}

function startTimer(unit: Unit): number {
  const service = unit.name.replace('.timer', '.service')
  const log = openSync(`${RUN}/${unit.name}.log`, 'a')
  const loop = `while sleep ${TIMER_MS / 1000}; do systemctl start ${service}; done`
  spawn('bash', ['-c', loop], { detached: true, stdio: ['ignore', log, log] }).unref()
  return 0
}

function stop(name: string): void {
  const file = `${RUN}/${readUnit(name).name}.pid`
  if (!existsSync(file)) return
  const pid = readFileSync(file, 'utf8')
  spawnSync('bash', ['-c', `kill ${pid} && tail --pid=${pid} -f /dev/null`], { timeout: 30_000 })
}

function reload(name: string): number {
  const unit = readUnit(name)
  const options = optionsOf(unit)
  const [program = '', ...args] = commandOf(unit, last(unit, 'ExecReload')!, options.env)
  return spawnSync(program, args, { ...options, stdio: 'inherit' }).status ?? 1
}

const postgres = (verb: string): number =>
  spawnSync('bash', ['-c', `pg_ctlcluster $(ls /etc/postgresql) main ${verb}`], {
    stdio: 'inherit',
  }).status ?? 1

function restart(name: string): number {
  if (name === 'postgresql') return postgres('restart')
  stop(name)
  return start(name)
}

spawnSync('mkdir', ['-p', RUN])
const [verb = '', ...rest] = process.argv.slice(2)
const names = rest.filter((word) => !word.startsWith('-'))
const VERBS: Record<string, (name: string) => number> = { start, restart, reload, enable: start }
if (verb !== 'daemon-reload') {
  const act = VERBS[verb]
  if (act === undefined) throw new Error(`systemctl ${verb} is not known here`)
  process.exitCode = Math.max(0, ...names.map(act))
}
