import { parseArgs } from 'node:util'
import { type Config, ConfigError, readConfig } from '../../../shared/config/config.ts'
import { misspeltVariables } from '../../../shared/config/misspelt.ts'
import { ALL_SECRETS } from '../../../shared/config/secrets.ts'
import { type Finding, isAnyBroken } from '../../../shared/doctor/finding.ts'
import {
  REPORT_LIMIT_MS,
  SECTIONS,
  type Section,
  unanswered,
} from '../../../shared/doctor/report.ts'
import { secretsOf, withoutSecrets } from '../../../shared/doctor/secretsHidden.ts'
import { judgeEnvironment } from '../../../shared/doctor/settingsFindings.ts'
import { findingsSummary, findingsTable, inOrder } from '../../../shared/doctor/table.ts'
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'
import { checkDatabase } from '../../../sql/checkDatabase.ts'
import { databaseUrl } from '../../../sql/databaseUrl.ts'
import { createPool, type Pool } from '../../../sql/db.ts'
import { pendingMigrations } from '../../../sql/migrate.ts'
import {
  findReport,
  livingSections,
  recordSection,
  requestReport,
} from '../../../sql/operations/healthReports.ts'
import { examine } from './examine.ts'
import { type DoctorTools, freshDns, PUBLIC_PORTS } from './look.ts'

const USAGE = 'usage: bun run doctor, or bun run doctor --json'
const POLL_MS = 100

/**
 * `bun run doctor` examines everything that must be right before strangers can send mail and pay, and receive replies.
 * Running workers make the examination, because mail and payments use the network of the workers. The process of the
 * command examines the sections that no worker examines. The exit code 1 means that the examination found something
 * broken.
 */
async function examineAll(): Promise<void> {
  const isJson = readArguments()
  const { config, faults } = readConfig(process.env, ALL_SECRETS)
  const environment = judgeEnvironment({ faults, misspelt: misspeltVariables(process.env) })
  const database = await openDatabase(config)
  const findings = [...environment, ...(await sectionsDespiteOutage(config, database))]
  await database.pool?.end()
  const report = inOrder(withoutSecrets(findings, secretsOf(config)))
  process.stdout.write(
    isJson
      ? `${JSON.stringify({ findings: report }, null, 2)}\n`
      : `${findingsTable(report)}\n${findingsSummary(report)}\n`,
  )
  process.exitCode = isAnyBroken(report) ? 1 : 0
}

function readArguments(): boolean {
  try {
    const { values } = parseArgs({ options: { json: { type: 'boolean' } } })
    return values.json === true
  } catch {
    throw new ConfigError(USAGE)
  }
}

async function openDatabase(config: Config): Promise<DoctorTools['database']> {
  try {
    const url = databaseUrl(config)
    await checkDatabase(url)
    return { pool: createPool({ url, size: 8, name: 'purser doctor' }) }
  } catch (error) {
    const isOurs = error instanceof ConfigError
    return { pool: null, reason: isOurs ? error.message : 'the database cannot be opened' }
  }
}

/**
 * Examines all sections. If the database connection is lost, the function examines all sections again without the
 * database.
 */
async function sectionsDespiteOutage(config: Config, database: DoctorTools['database']) {
  try {
    return await sections(config, database)
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error
    return await sections(config, { pool: null, reason: 'the database does not answer any more' })
  }
}

async function sections(config: Config, database: DoctorTools['database']): Promise<Finding[]> {
  const tools = { config, database, ...freshDns(config), ports: PUBLIC_PORTS }
  const own = (section: Section) => examine(section, tools)
  const { pool } = database
  if (pool === null) return (await Promise.all(SECTIONS.map(own))).flat()
  // If the database does not have the tables of this service, no workers run. Only the section `service` examines such a
  // database.
  if ((await pendingMigrations(pool)).length > 0) {
    const reason = 'the database lacks migrations'
    const without = { ...tools, database: { pool: null, reason } }
    const found = SECTIONS.map((one) => examine(one, one === 'service' ? tools : without))
    return (await Promise.all(found)).flat()
  }
  const living = await livingSections(pool)
  const id = await requestReport(pool, { sections: living })
  const found = await Promise.all(
    SECTIONS.map(async (section) => {
      if (living.includes(section)) return await answered(pool, id, section)
      const findings = await own(section)
      await recordSection(pool, { reportId: id, section, findings }).catch((error) => {
        if (!isDatabaseUnavailable(error)) throw error
      })
      return findings
    }),
  )
  return found.flat()
}

/**
 * Waits until a worker has stored the findings of one section of the report. A lost database connection does not end
 * the wait, because the worker stores its findings as soon as the database answers again.
 */
async function answered(pool: Pool, id: string, section: Section): Promise<Finding[]> {
  const deadlineMs = performance.now() + REPORT_LIMIT_MS
  let away: unknown = null
  while (performance.now() < deadlineMs) {
    try {
      const findings = (await findReport(pool, id))?.sections[section]
      if (findings !== undefined) return findings
      away = null
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error
      away = error
    }
    await Bun.sleep(POLL_MS)
  }
  if (away !== null) throw away
  return [unanswered(section)]
}

try {
  await examineAll()
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 78
}
