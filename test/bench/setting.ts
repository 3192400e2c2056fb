import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey } from '../../shared/apiKey.ts'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import { createProject, type Project } from '../../sql/account/projects/projects.ts'
import { createPool, type Pool } from '../../sql/db.ts'
import { startEmbeddedPostgres } from '../../sql/embedded/embeddedPostgres.ts'
import { migrate } from '../../sql/migrate.ts'

/** Describes a separate, durable database with one project, for benchmarks. */
export type Setting = AsyncDisposable & {
  url: string
  pool: Pool
  dataDir: string
  project: Project
  key: string
  /** Holds the environment variables of the processes that the benchmark starts. */
  env: Record<string, string>
}

/**
 * Starts the database with synchronous_commit and fsync, as in production. @param options.libraries names the libraries
 * of PostgreSQL that it loads at its start.
 */
export async function createSetting(options: { libraries?: string } = {}): Promise<Setting> {
  const dataDir = mkdtempSync(join(tmpdir(), 'purser-bench-'))
  const start = () => startEmbeddedPostgres({ dataDir, onLog: () => {} })
  let postgres = await start()
  await migrate(postgres.url)
  if (options.libraries !== undefined) {
    const admin = createPool({ url: postgres.url, size: 1, name: 'bench' })
    await admin.query(`alter system set shared_preload_libraries = '${options.libraries}'`)
    await admin.end()
    await postgres.stop()
    postgres = await start()
  }
  const pool = createPool({ url: postgres.url, size: 64, name: 'bench' })
  const key = generateKey('project')
  const { project } = await createProject(pool, {
    name: 'Bench',
    purpose: 'SELLER',
    emailAddress: 'bench@mail.test',
    scopes: PROJECT_SCOPES,
    key,
  })
  return {
    url: postgres.url,
    pool,
    dataDir,
    project,
    key,
    env: {
      DATABASE_URL: postgres.url,
      DATA_DIR: dataDir,
      MAIL_DOMAIN: 'mail.test',
      // Requests are counted against the rate limit as in production, but the limit is too high to be reached.
      RATE_LIMIT_REQUESTS: '1000000',
      SMTP_MESSAGES_PER_IP: '0',
      SMTP_MESSAGES_PER_INBOX: '0',
      SMTP_LARGE_KB_PER_S: '0',
      DAILY_SEND_LIMIT: '1000000000',
      LOG_LEVEL: 'warn',
      BENCH_PROJECT: project.id,
    },
    async [Symbol.asyncDispose]() {
      await pool.end()
      await postgres.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
