import { join } from 'node:path'
import pino, { type LoggerOptions } from 'pino'
import { ConfigError } from '../../shared/config/config.ts'
import { LOG_DESTINATION } from '../../shared/process/logOptions.ts'
import { runService } from '../../shared/process/service.ts'
import { PortTaken, startDevnet } from './devnet.ts'

/**
 * Runs the embedded devnet as a separate process, because nothing else in production loads the compiled contracts.
 */
const openLog = (options: LoggerOptions) => pino(options, pino.destination(LOG_DESTINATION))

await runService(process, { name: 'devnet', openLog }, async (config, log) => {
  const { embeddedDevnet, devnetPort, devnetPortIsGiven } = config.chain
  if (!embeddedDevnet) {
    throw new ConfigError('RPC_URL: must be left out to run the embedded devnet')
  }
  try {
    const devnet = await startDevnet({
      port: devnetPort,
      orAnyPort: !devnetPortIsGiven,
      stateFile: join(config.dataDir, 'devnet.state'),
      log,
    })
    return { ...devnet, facts: { port: String(devnet.port) } }
  } catch (error) {
    if (!(error instanceof PortTaken)) throw error
    throw new ConfigError(
      `DEVNET_PORT: ${error.message}; leave it out to use any free port, or name another`,
    )
  }
})
