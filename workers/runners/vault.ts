import { RUNNER_CONNECTIONS } from '../queue/runnerConnections.ts'
import { createUseSecret } from '../vault/useSecret.ts'
import type { OutboundHttp, Runner } from './runner.ts'

/** Sends the HTTP requests in which agents use secrets of the vault, each with its secret filled in. */
export const vaultRunner = (options: OutboundHttp): Runner<'vault'> => ({
  name: 'vault',
  tasks: (context) => ({ use_secret: createUseSecret(context, options) }),
  pollIntervalMs: 500,
  // Many jobs may run at once, because a job that uses a secret mostly waits for the remote server, and for permission
  // to mask the response.
  concurrency: 50,
  connections: RUNNER_CONNECTIONS.vault,
})
