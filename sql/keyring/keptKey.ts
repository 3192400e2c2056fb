import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const KEY_BYTES = 32

/**
 * Returns the key that is generated for development. The key is generated once and kept in a file of DATA_DIR that only
 * its owner can read.
 * @returns the text `development:` and then the base64 of 32 random bytes.
 * @throws in production, because `SECRETS_OF` does not list the key among the secrets of this process.
 */
export function keptKey(
  { dataDir, production }: { dataDir: string; production: boolean },
  name: string,
): string {
  if (production) throw new Error(`production has no generated ${name}`)
  const file = join(dataDir, name)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  if (!existsSync(file)) {
    const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES))
    const draft = `${file}.${process.pid}`
    writeFileSync(draft, `development:${Buffer.from(bytes).toString('base64')}`, { mode: 0o600 })
    try {
      // The key file is created by a hard link, so that it appears only with its full content, and only once. So two
      // processes that start at the same time read the same key.
      linkSync(draft, file)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    } finally {
      rmSync(draft)
    }
  }
  return readFileSync(file, 'utf8').trim()
}
