import type { Logger } from 'pino'
import { type PoolRegistration, registerPool } from '../../sql/queue/workerPools.ts'

/**
 * Describes the registration of a worker pool as alive. The pool holds an advisory lock in PostgreSQL for as long as it
 * runs.
 */
export type Registration = {
  /**
   * Returns a counter that grows with each registration of the worker pool as alive. The number is negative while the worker pool is not
   * registered.
   */
  epoch(): number
  release(): Promise<void>
}

const RETRY_MS = 250

/**
 * Registers a worker pool as alive, by means of an advisory lock in PostgreSQL. If the database connection that holds
 * the advisory lock breaks, the worker pool is registered again.
 */
export function keepRegistered(options: {
  databaseUrl: string
  poolName: string
  graphilePoolId: string
  log: Logger
}): Registration {
  const { log, ...identity } = options
  let epochs = 0
  let isHeld = false
  let released = false
  let taken: Promise<PoolRegistration | null>
  const register = async (): Promise<PoolRegistration | null> => {
    for (let failures = 0; !released; failures++) {
      try {
        const registration = await registerPool({
          ...identity,
          onLost() {
            isHeld = false
            taken = register()
          },
        })
        if (failures > 0) log.info({ failures }, 'the pool is registered again')
        epochs++
        isHeld = true
        return registration
      } catch (error) {
        if (failures === 0) log.warn({ err: error }, 'the pool could not be registered; will retry')
        await Bun.sleep(RETRY_MS)
      }
    }
    return null
  }
  taken = register()
  return {
    epoch: () => (isHeld ? epochs : -1),
    async release() {
      released = true
      await (await taken)?.release().catch(() => {})
    },
  }
}
