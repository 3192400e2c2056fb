import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '../../shared/errorCode.ts'

const KEY_BYTES = 32

/**
 * Returns a generated key for development. The service generates it once and keeps it in a file of DATA_DIR that only
 * the file's owner can read.
 * @returns the text `development:`, followed by 32 random bytes in base64.
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
    // Without fsync, a power failure could empty the file with the generated key, although the database already has
    // secrets under this key.
    writeFileSync(draft, `development:${Buffer.from(bytes).toString('base64')}`, {
      mode: 0o600,
      flush: true,
    })
    try {
      // A hard link creates the file of the generated key only if it does not exist yet, and only with its full
      // content. Therefore two processes that start at the same time read the same key.
      linkSync(draft, file)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    } finally {
      rmSync(draft)
    }
  }
  return readFileSync(file, 'utf8').trim()
}
