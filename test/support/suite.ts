import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../sql/embedded/embeddedPostgres.ts'
import { migrate } from '../../sql/migrate.ts'
import { TEMPLATE_DATABASE } from './database/database.ts'

/**
 * Holds a folder in memory. Creating a test database takes 25 ms in memory, but 200 to 600 ms on a shared disk.
 */
const MEMORY = '/dev/shm'
const MEMORY_MIN_BYTES = 4 * 1024 ** 3

/**
 * Holds the environment variables that all test files share, and a function that stops the PostgreSQL server of the
 * tests and deletes the temporary folder.
 */
export type Suite = { env: Record<string, string>; stop(): Promise<void> }

/**
 * Starts an embedded PostgreSQL with a template database that has all migrations. Makes a folder for all temporary
 * files of the tests.
 */
export async function startSuite(): Promise<Suite> {
  const folder = mkdtempSync(join(hasMemory() ? MEMORY : tmpdir(), 'purser-test-'))
  // PostgreSQL does not run as root, so the user who runs PostgreSQL must be able to read the temporary folder.
  chmodSync(folder, 0o711)
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  try {
    const database = await startDatabase(join(folder, 'database'))
    return {
      env: { PURSER_TEST_DATABASE: database.url, TMPDIR: folder },
      async stop() {
        await database.stop()
        removeFolder()
      },
    }
  } catch (error) {
    removeFolder()
    throw error
  }
}

function hasMemory(): boolean {
  if (!existsSync(MEMORY)) return false
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize >= MEMORY_MIN_BYTES
}

async function startDatabase(dataDir: string): Promise<{ url: string; stop(): Promise<void> }> {
  const database = await startEmbeddedPostgres({ dataDir, durable: false, onLog: () => {} })
  try {
    await makeTemplate(database.url)
  } catch (error) {
    await database.stop()
    throw error
  }
  return database
}

async function makeTemplate(url: string): Promise<void> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  await admin.query(`create database ${TEMPLATE_DATABASE}`)
  await admin.end()
  await migrate(url.replace(/\/[^/]*$/, `/${TEMPLATE_DATABASE}`))
}
