/**
 * Checks the systemd units in deploy/systemd with systemd-analyze. The test does not run the units, because it has no
 * systemd.
 */
import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RUNNER_NAMES } from '../../../shared/tasks.ts'

const ROOT = join(import.meta.dir, '../../..')
const UNITS = join(ROOT, 'deploy/systemd')
const units = readdirSync(UNITS)
  .filter((name) => name.endsWith('.service'))
  .toSorted()
/**
 * Limits the exposure level that `systemd-analyze security` may report for a unit, in tenths. The level 10.0 means that
 * the unit has no protection at all.
 */
const EXPOSURE_MAX = 20

const hasSystemd = Bun.which('systemd-analyze') !== null
if (!hasSystemd) {
  process.stderr.write('SKIPPED: the check of the systemd units, because there is no systemd\n')
}

test('each part of the service has a systemd unit that starts an existing program', () => {
  expect(units).toEqual([
    'purser-api.service',
    'purser-certificate.service',
    'purser-migrate.service',
    'purser-smtp.service',
    'purser-workers@.service',
  ])
  for (const name of units) {
    const text = readFileSync(join(UNITS, name), 'utf8')
    const [, file = ''] =
      /^ExecStart=\/opt\/purser\/(?:node_modules\/\.bin\/bun )?(\S+)/m.exec(text) ?? []
    expect([name, file !== '' && existsSync(join(ROOT, file))]).toEqual([name, true])
    if (file.endsWith('.ts')) expect(text).toContain('Environment=NODE_ENV=production')
  }
})

test('while the database is unreachable, systemd restarts a part of the service, however often the part ends', () => {
  for (const name of units) {
    const text = readFileSync(join(UNITS, name), 'utf8')
    if (!text.includes('\nRestart=')) continue
    expect([name, text]).toEqual([name, expect.stringMatching(/^StartLimitIntervalSec=0$/m)])
  }
})

test.skipIf(!hasSystemd)(
  'systemd-analyze accepts every unit, and rates the exposure of each unit to attacks at 2.0 or less',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'purser-units-'))
    try {
      // For each instance of the template, the test writes a separate systemd unit with the program path of this
      // repository.
      const written = units.flatMap((name) => {
        const text = readFileSync(join(UNITS, name), 'utf8').replaceAll('/opt/purser', ROOT)
        const names = name.includes('@')
          ? RUNNER_NAMES.map((runner) => name.replace('@', `@${runner}`))
          : [name]
        for (const instance of names) writeFileSync(join(folder, instance), text)
        return names.map((instance) => join(folder, instance))
      })
      for (const path of written) {
        for (const args of [
          ['verify', path],
          ['security', '--offline=true', `--threshold=${EXPOSURE_MAX}`, path],
        ]) {
          const run = Bun.spawnSync(['systemd-analyze', ...args], {
            stdout: 'pipe',
            stderr: 'pipe',
          })
          expect([path, args[0], run.exitCode, run.stderr.toString()]).toEqual([
            path,
            args[0],
            0,
            '',
          ])
        }
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
