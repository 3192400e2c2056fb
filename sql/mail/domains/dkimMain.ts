import { ConfigError, parseConfig } from '../../../shared/config/config.ts'
import { isDomain } from '../../../shared/mail/address.ts'
import { txtStrings } from '../../../shared/mail/compose/dkim.ts'
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'
import { onDatabase } from '../../command.ts'
import { createKeyringSource, masterKeys } from '../../keyring/keyring.ts'
import { createDkimKey, listDkimKeys } from './dkimKeys.ts'

/** Runs the command `bun run dkim:new DOMAIN`, which creates a DKIM key and prints its DNS record. */
async function create(): Promise<void> {
  const domain = process.argv[2]?.toLowerCase().replace(/\.$/, '') ?? ''
  if (process.argv.length !== 3 || !isDomain(domain)) {
    throw new ConfigError('usage: bun run dkim:new DOMAIN, such as mail.example.com')
  }
  const config = parseConfig(process.env, ['MASTER_KEYS'])
  await onDatabase(config, { name: 'purser dkim' }, async (pool) => {
    const [before] = await listDkimKeys(pool, domain)
    const keyring = await createKeyringSource(masterKeys(config))(pool)
    const { selector, record } = await createDkimKey(pool, keyring, domain)
    process.stdout.write(`${selector}._domainkey.${domain}. IN TXT ${txtStrings(record)}\n`)
    const overlap =
      before === undefined
        ? ''
        : ` So does ${before.selector}: keep its record for a week after you publish this one.`
    process.stderr.write(
      `Publish this record. The key signs mail from @${domain} from now on.${overlap}\n`,
    )
  })
}

try {
  await create()
} catch (error) {
  const expected = error instanceof ConfigError
  const away = isDatabaseUnavailable(error) ? 'the database is away' : String(error)
  process.stderr.write(`${expected ? error.message : `no key was made: ${away}`}\n`)
  process.exitCode = expected ? 78 : 1
}
