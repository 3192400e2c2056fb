import type { RunnerName } from '../../shared/tasks.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import type { OutboundPolicy } from '../http/guardedRequest.ts'
import type { PoolSettings } from '../queue/runner.ts'

/** The settings of one runner, without its database. */
export type Runner<Name extends RunnerName> = Omit<PoolSettings, 'databaseUrl'> & { name: Name }

/** The parts of a runner that sends HTTP requests to other hosts. */
export type OutboundHttp = {
  keyring: KeyringSource
  /** `ca`: further certificate authorities, PEM. */
  policy: OutboundPolicy & { ca?: string }
}
