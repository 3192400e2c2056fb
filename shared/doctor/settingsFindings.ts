import type { Config } from '../config/config.ts'
import type { Fault } from '../config/configError.ts'
import { holdsDevnetKey } from '../config/demands.ts'
import type { Misspelt } from '../config/misspelt.ts'
import { variables } from '../config/variables.ts'
import { type Finding, findingsIn } from './finding.ts'

const { ok, warning, broken } = findingsIn('settings')

/** Lists the variables that `bun run secrets:new` generates. */
const GENERATED = ['MASTER_KEYS', 'RECEIPT_SIGNING_KEYS', 'SETTLEMENT_KEYS', 'METRICS_TOKEN']

/** Holds an example value for each environment variable that has no default. */
const EXAMPLES: Readonly<Record<string, string>> = {
  SMTP_RELAY_URL: 'direct',
  RPC_URL: 'https://mainnet.base.org',
  BASE_URL: 'https://agents.example.com',
  NODE_ENV: 'production',
}

/** Makes the findings of the doctor (the service's self-check) about the environment variables of a process. */
export function judgeEnvironment({
  faults,
  misspelt,
}: {
  faults: readonly Fault[]
  misspelt: readonly Misspelt[]
}): Finding[] {
  const found = faults.map(({ variable, rule }) => broken(variable, rule, changeOf(variable)))
  const spelt = misspelt.map(({ name, nearest }) =>
    warning(name, 'it is no setting and has no effect', `${nearest}=…   # instead of ${name}`),
  )
  const all = faults.length > 0 ? [] : [ok('variables', 'every variable can be read')]
  return [...all, ...found, ...spelt]
}

const changeOf = (variable: string): string =>
  GENERATED.includes(variable)
    ? `bun run secrets:new   # prints ${variable}=…`
    : `${variable}=${EXAMPLES[variable] ?? defaultOf(variable) ?? '…   # docs/settings.md'}`

/**
 * Returns the default value of an environment variable as text. @returns undefined if the variable has no default
 * value, or if the default value is neither a text nor a number.
 */
function defaultOf(variable: string): string | undefined {
  const { data } = variables.safeParse({})
  const value = (data as Record<string, unknown> | undefined)?.[variable]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}

/** Judges whether a service with the given settings is safe for the mail and money of other people. */
export function judgeProduction({
  production,
  chain,
  relayUrl,
  mailDomain,
}: Pick<Config, 'production' | 'chain' | 'relayUrl' | 'mailDomain'>): Finding[] {
  const mode = production
    ? ok('NODE_ENV', 'production')
    : warning(
        'NODE_ENV',
        'development: missing keys are generated in DATA_DIR',
        'NODE_ENV=production',
      )
  const keys =
    !chain.embeddedDevnet && holdsDevnetKey(chain.settlementKeys)
      ? [
          broken(
            'SETTLEMENT_KEYS',
            'a key of the devnet, which is public',
            'bun run secrets:new   # prints SETTLEMENT_KEYS=…',
          ),
        ]
      : []
  const capture =
    relayUrl === 'capture'
      ? [warning('SMTP_RELAY_URL', 'capture: no mail is sent', 'SMTP_RELAY_URL=direct')]
      : []
  const local = /(?:^|\.)(?:localhost|test|invalid)$/.test(mailDomain)
    ? [
        warning(
          'MAIL_DOMAIN',
          `${mailDomain}: no stranger can write to it`,
          'MAIL_DOMAIN=agents.example.com',
        ),
      ]
    : []
  return [mode, ...keys, ...capture, ...local]
}

/**
 * Judges whether the master keys of this process fit the stored secrets. @param fault names the wrong or missing master
 * key. Null means that no master key is wrong or missing.
 */
export const judgeMasterKeys = (fault: string | null): Finding =>
  fault === null
    ? ok('MASTER_KEYS', 'the keys of every stored secret are there')
    : broken(
        'MASTER_KEYS',
        fault.replace(/^MASTER_KEYS: /, ''),
        'MASTER_KEYS=…   # the same for every process',
      )

/**
 * Sets the number of seconds by which two clocks may differ before the doctor (the service's self-check) warns. If the
 * difference is more than CLOCK_BROKEN_S, signatures with a time stamp fail.
 */
const CLOCK_WARNING_S = 10
const CLOCK_BROKEN_S = 30

/**
 * Compares the clock of this machine with another clock, and makes the finding of the doctor (the self-check) about the
 * difference.
 * @param aheadMs is the time of this machine minus the time of the other clock. Null means that the doctor (the
 * self-check) could not read the other clock.
 */
export function judgeClock(other: string, aheadMs: number | null): Finding {
  const check = `clock, against ${other}`
  if (aheadMs === null) return warning(check, `${other} could not be asked`)
  const seconds = Math.round(Math.abs(aheadMs) / 1000)
  const found = `${seconds} s ${aheadMs < 0 ? 'behind' : 'ahead of'} it`
  if (seconds > CLOCK_BROKEN_S) return broken(check, found, 'timedatectl set-ntp true')
  if (seconds > CLOCK_WARNING_S) return warning(check, found, 'timedatectl set-ntp true')
  return ok(check, seconds === 0 ? 'the same' : found)
}
