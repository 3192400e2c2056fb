import type { RunnerName } from '../../shared/tasks.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import type { OutboundPolicy } from '../http/guardedRequest.ts'
import type { PoolSettings } from '../queue/runner.ts'

/** Holds the settings of one runner, without the URL of its database. */
export type Runner<Name extends RunnerName> = Omit<PoolSettings, 'databaseUrl'> & { name: Name }

/** Holds the parts that a runner needs if it sends HTTP requests to other hosts. */
export type OutboundHttp = {
  keyring: KeyringSource
  /**
   * Decides which network addresses an HTTP request may reach. The field `ca` contains additional certificate
   * authorities in PEM form.
   */
  policy: OutboundPolicy & { ca?: string }
}
