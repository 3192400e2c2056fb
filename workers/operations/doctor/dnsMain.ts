import { isIP } from 'node:net'
import { parseArgs } from 'node:util'
import { ConfigError, parseConfig } from '../../../shared/config/config.ts'
import {
  addressRecord,
  ptrRecord,
  recordsOf,
  type ZoneRecord,
  type ZoneSettings,
  zoneLine,
} from '../../../shared/doctor/zone.ts'
import { onDatabase } from '../../../sql/command.ts'
import { servedDomains, stsIdOf, zoneSettings } from './served.ts'

const USAGE =
  'usage: bun run dns [--bind] [--address IP …] with the public addresses of this machine'
const DOMAINS_MAX = 10_000
const TTL_S = 3600

/**
 * `bun run dns` prints the DNS records that MAIL_DOMAIN and every mail domain in the database need. With `--bind`, the
 * program prints only the DNS records, as a part of a zone file.
 */
async function print(): Promise<void> {
  const { isBind, addresses } = readArguments()
  const config = parseConfig(process.env, [])
  const settings = zoneSettings(config)
  await onDatabase(config, { name: 'purser dns' }, async (pool) => {
    const states = { states: ['pending', 'verified', 'failed'], limit: DOMAINS_MAX } as const
    const served = await servedDomains(config, pool, states)
    const stsId = stsIdOf(config)
    const host = hostLines(settings, addresses)
    const own = served.flatMap((domain) => [
      `; ${domain.domain}`,
      ...(domain.dkim.length === 0
        ? [`; no key signs its mail yet: bun run dkim:new ${domain.domain}`]
        : []),
      ...recordsOf(domain, settings, stsId).map(zoneLine),
    ])
    const lines = isBind
      ? [`$TTL ${TTL_S}`, ...host, ...own]
      : [...host, ...own, ...advice(settings, addresses)]
    process.stdout.write(lines.map((line) => `${line}\n`).join(''))
  })
}

function readArguments(): { isBind: boolean; addresses: string[] } {
  try {
    const { values } = parseArgs({
      options: { bind: { type: 'boolean' }, address: { type: 'string', multiple: true } },
    })
    const { bind = false, address = [] } = values
    if (address.every((one) => isIP(one) > 0)) return { isBind: bind, addresses: address }
  } catch {
    // The command line has an unknown option, so the program shows its usage.
  }
  throw new ConfigError(USAGE)
}

function hostLines({ mailHostname }: ZoneSettings, addresses: readonly string[]): string[] {
  const records: ZoneRecord[] = addresses.map((address) => addressRecord(mailHostname, address))
  const missing = `; ${mailHostname}. IN A …   the public address of this machine: bun run dns --address …`
  return [`; ${mailHostname}`, ...(records.length === 0 ? [missing] : records.map(zoneLine))]
}

/** Returns advice on DNS records in zones that do not belong to the operator. */
function advice({ mailHostname, mtaSts }: ZoneSettings, addresses: readonly string[]): string[] {
  const reverse =
    addresses.length === 0
      ? [`; the reverse name of each address: ${mailHostname}`]
      : addresses.map((address) => `; ${zoneLine(ptrRecord(address, mailHostname))}`)
  return [
    '; Ask the provider of the addresses to set:',
    ...reverse,
    mtaSts === 'none'
      ? '; MTA_STS=testing publishes a policy of MTA-STS. Run this command again with it.'
      : '; https://mta-sts.DOMAIN must lead to the API, with a certificate for each name.',
  ]
}

try {
  await print()
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 78
}
