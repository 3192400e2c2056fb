import { RUNNER_CONNECTIONS } from '../queue/runnerConnections.ts'
import { createUseSecret } from '../vault/useSecret.ts'
import type { OutboundHttp, Runner } from './runner.ts'

/** Sends requests with a secret. */
export const vaultRunner = (options: OutboundHttp): Runner<'vault'> => ({
  name: 'vault',
  tasks: (context) => ({ use_secret: createUseSecret(context, options) }),
  pollIntervalMs: 500,
  // A job waits for the server, and for its turn to be masked, most of its time.
  concurrency: 50,
  connections: RUNNER_CONNECTIONS.vault,
})
