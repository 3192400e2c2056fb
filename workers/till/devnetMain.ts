import { join } from 'node:path'
import { ConfigError } from '../../shared/config.ts'
import { runService } from '../../shared/service.ts'
import { startDevnet } from './devnet.ts'

/** The embedded devnet as a process of its own: nothing else in production loads the contracts' artifacts. */
await runService(process, { name: 'devnet' }, async (config, log) => {
  if (!config.chain.embeddedDevnet) {
    throw new ConfigError('RPC_URL: must be left out to run the embedded devnet')
  }
  return startDevnet({
    port: config.chain.devnetPort,
    stateFile: join(config.dataDir, 'devnet.state'),
    log,
  })
})
