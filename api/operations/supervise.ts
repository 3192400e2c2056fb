import type { Logger } from 'pino'
import { ConfigError } from '../../shared/config/config.ts'

/** Describes a running part of the service, such as a worker pool. */
export type RunningPart = {
  /** Holds a promise that resolves with the reason if the part of the service ends before `stop` is called. */
  ended: Promise<string>
  stop(): Promise<void>
}

/**
 * Limits the attempts to start a part for the first time. Several attempts are allowed, so that the whole service
 * continues if somebody kills a part while it starts.
 */
const FIRST_TRIES = 3

export type SupervisedPart = {
  stop(): Promise<void>
}

const PAUSE_MIN_MS = 250
const PAUSE_MAX_MS = 8_000
/**
 * Holds the running time in milliseconds after which an ended part is restarted without a pause. If a part ends sooner,
 * each pause before its restart is longer than the one before.
 */
const STEADY_MS = 5_000

/**
 * Starts a part of the service, and starts the part again when the part ends. The log gets one line when the part ends,
 * one line for the first failed restart, and one line when the part runs again.
 * @throws {ConfigError} if the part of the service refuses its settings.
 * @throws the error of the last attempt, if the part never starts.
 */
export async function supervise(
  name: string,
  launch: () => Promise<RunningPart>,
  log: Logger,
): Promise<SupervisedPart> {
  let running = await firstLaunch(name, launch, log)
  let startedMs = performance.now()
  let pauseMs = PAUSE_MIN_MS
  let stopping = false
  const stopped = Promise.withResolvers<void>()

  const relaunch = async () => {
    const awaySinceMs = performance.now()
    for (let tries = 1; !stopping; tries++) {
      await Promise.race([Bun.sleep(pauseMs), stopped.promise])
      pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)
      if (stopping) return
      try {
        running = await launch()
        startedMs = performance.now()
        const awayMs = Math.round(startedMs - awaySinceMs)
        log.warn({ part: name, tries, awayMs }, 'a part is back')
        return
      } catch (error) {
        const reason = (error as Error).message
        if (tries === 1) log.error({ part: name, reason }, 'a part cannot start; will try on')
      }
    }
  }
  const supervised = (async () => {
    for (;;) {
      const reason = await Promise.race([running.ended, stopped.promise])
      if (stopping) return
      log.error({ part: name, reason }, 'a part ended; starting it again')
      if (performance.now() - startedMs > STEADY_MS) pauseMs = PAUSE_MIN_MS
      await relaunch()
      if (stopping) return
    }
  })()
  return {
    async stop() {
      stopping = true
      stopped.resolve()
      await supervised
      await running.stop()
    },
  }
}

async function firstLaunch(
  name: string,
  launch: () => Promise<RunningPart>,
  log: Logger,
): Promise<RunningPart> {
  for (let tries = 1; ; tries++) {
    try {
      return await launch()
    } catch (error) {
      if (error instanceof ConfigError || tries === FIRST_TRIES) throw error
      log.error(
        { part: name, reason: (error as Error).message },
        'a part cannot start; will try on',
      )
      await Bun.sleep(PAUSE_MIN_MS * 2 ** tries)
    }
  }
}
