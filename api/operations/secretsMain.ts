import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { generateKey } from '../../shared/apiKey.ts'
import { ConfigError } from '../../shared/config/config.ts'

const USAGE = 'usage: bun run secrets:new, or bun run secrets:new FILE for a new file'

/**
 * `bun run secrets:new`: prints a new value for each secret of a production `.env`. With FILE it writes them there, and
 * never over a file: keys that are lost cannot be made again.
 */
function create(): void {
  const [file, ...more] = process.argv.slice(2)
  if (more.length > 0 || file?.startsWith('-')) throw new ConfigError(USAGE)
  const { text, wallet } = newSecrets()
  if (file === undefined) process.stdout.write(text)
  else write(resolve(file), text)
  process.stderr.write(
    `Keep these apart from the database and its backups. The gas wallet ${wallet} needs ether on the chain of RPC_URL.\n`,
  )
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new ConfigError(`${file} exists; name a new file`)
    throw new ConfigError(`${file} cannot be written (${code}); name another`)
  }
}

function newSecrets(): { text: string; wallet: string } {
  const year = new Date().getUTCFullYear()
  const named = () => `${year}:${randomBytes(32).toString('base64')}`
  const settlementKey = generatePrivateKey()
  const wallet = privateKeyToAddress(settlementKey)
  const values = {
    NODE_ENV: 'production',
    MASTER_KEYS: named(),
    RECEIPT_SIGNING_KEYS: named(),
    SETTLEMENT_KEYS: settlementKey,
    METRICS_TOKEN: randomBytes(24).toString('hex'),
    POSTGRES_PASSWORD: randomBytes(24).toString('hex'),
    BOOTSTRAP_PLATFORM_KEY: generateKey('platform'),
  }
  return {
    text: Object.entries(values)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
    wallet,
  }
}

try {
  create()
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 78
}
