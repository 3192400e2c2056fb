import {
  type CutMoment,
  type PostgresProxy,
  startPostgresProxy,
} from '../database/postgresProxy.ts'

/**
 * Sets how many additional database round trips a run with a cut connection may need at most, for retries and polls.
 */
const MARGIN = 4

/**
 * Repeats the same work once for each round trip to the database, each time with the connection cut at another round
 * trip. Each run cuts the database connection one round trip later than the previous run. The last run cuts the
 * connection at the last round trip of an undisturbed run.
 * @param work gets a label that differs for each run, and throws if the result of the run is wrong
 * @returns the number of runs whose connection was cut
 */
export async function cutEveryRoundTrip(
  proxy: PostgresProxy,
  moment: CutMoment,
  work: (label: string) => Promise<void>,
): Promise<number> {
  const before = proxy.roundTrips
  await work(`${moment}-none`)
  const roundTrips = proxy.roundTrips - before + MARGIN
  let cuts = 0
  for (let number = 1; number <= roundTrips; number++) {
    proxy.cutAt(number, moment)
    try {
      await work(`${moment}-${number}`)
    } catch (cause) {
      const at = `cut ${moment} round trip ${number}: ${proxy.cutStatement ?? 'not reached'}`
      throw new Error(at, { cause })
    }
    if (proxy.cutStatement !== null) cuts++
    proxy.disarm()
  }
  return cuts
}

/** Makes the option `through` of a test service, which puts a proxy between the service and the database. */
export function proxyThrough() {
  const started = Promise.withResolvers<PostgresProxy>()
  return {
    proxy: started.promise,
    async through(databaseUrl: string): Promise<string> {
      const proxy = await startPostgresProxy(databaseUrl)
      started.resolve(proxy)
      return proxy.url
    },
  }
}
