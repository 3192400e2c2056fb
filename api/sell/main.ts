/**
 * The command `bun run sell URL PRICE`, or `bun run sell ORIGIN --prices FILE`, sells the responses of a server without
 * any change to the server's code.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { parseArgs } from 'node:util'
import { serve } from 'bun'
import { ConfigError } from '../../shared/config/config.ts'
import { parseMcpConfig } from '../../shared/config/mcpConfig.ts'
import { limitHeaders } from '../../shared/http/headerLimit.ts'
import { PurserError } from '../client/errors.ts'
import { Purser } from '../client/purser.ts'
import { drainOnSignal } from './drain.ts'
import { onePrice, PriceError, type Prices, readPrices } from './prices.ts'
import { registerPrices } from './registerPrices.ts'
import { normalPath, PathError } from './sellPath.ts'
import { createSellProxy } from './sellProxy.ts'

const PORT = '4402'
const TIMEOUT_S = '60'
/**
 * Sets for how many seconds a client's connection may be idle. The value is the highest that Bun allows, because Bun's
 * default of 10 s would cut off slow responses.
 */
const IDLE_TIMEOUT_S = 255
/**
 * Sets how many milliseconds a settlement of a payment may last. A stopping proxy waits for the settlements, and then
 * for the responses of the server behind it.
 */
const SETTLEMENT_MS = 60_000
/**
 * Limits how many seconds the proxy waits for the server behind it. The buyer gets no byte during this wait and the
 * settlement before it. The two times together are below the idle time-out, so that the proxy can still send an error
 * if the server responds too late.
 */
const TIMEOUT_MAX_S = IDLE_TIMEOUT_S - SETTLEMENT_MS / 1_000 - 5

const USAGE =
  'bun run sell URL PRICE [--port PORT] [--host HOST] [--public ORIGIN] [--timeout SECONDS], or bun run sell ORIGIN --prices FILE'

/**
 * Limits the bytes of a request's headers. Bun's default of 16 KB would be too small for the longest payment together
 * with other headers. A higher limit is safe, because the proxy forwards no payment, and limits the other headers
 * itself.
 */
const HEADERS_MAX_BYTES = 64 * 1024

/** Reports that the arguments of `bun run sell` are unusable. */
class UsageError extends Error {}

function readArguments() {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(2),
    allowPositionals: true,
    options: {
      port: { type: 'string', default: PORT },
      host: { type: 'string', default: '127.0.0.1' },
      prices: { type: 'string' },
      public: { type: 'string' },
      timeout: { type: 'string', default: TIMEOUT_S },
    },
  })
  const [given = '', amount] = positionals
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol)) {
    throw new UsageError('the first argument must be the http:// or https:// URL of your server')
  }
  if (!/^\d{1,5}$/.test(values.port)) throw new UsageError('--port must be a number')
  const timeoutS = Number(values.timeout)
  if (!/^\d{1,3}$/.test(values.timeout) || timeoutS < 1 || timeoutS > TIMEOUT_MAX_S) {
    throw new UsageError(`--timeout must be a whole number of seconds from 1 to ${TIMEOUT_MAX_S}`)
  }
  if (values.public !== undefined && !/^https?:\/\/[^/]+$/.test(values.public)) {
    throw new UsageError('--public must be an origin, such as https://api.example.com')
  }
  const { origin, pathname } = new URL(given)
  return {
    ...values,
    timeoutMs: timeoutS * 1000,
    origin,
    prices: pricesOf(pathname, amount, values.prices),
  }
}

function pricesOf(pathname: string, amount: string | undefined, file: string | undefined): Prices {
  if ((amount === undefined) === (file === undefined)) {
    throw new UsageError('name a price or --prices FILE, one of both')
  }
  if (file !== undefined) {
    if (pathname !== '/') throw new UsageError('with --prices the first argument must have no path')
    return readPrices(readFileSync(file, 'utf8'))
  }
  return onePrice(normalPath(pathname), amount!)
}

try {
  const { origin, prices, port, host, public: given, timeoutMs } = readArguments()
  const { url, apiKey } = parseMcpConfig(process.env)
  const purser = new Purser({ baseUrl: url, apiKey })
  // A buyer may send a request before the proxy is ready. Such a request waits until the promise `ready` resolves.
  const { promise: ready, resolve: isReady } =
    Promise.withResolvers<ReturnType<typeof createSellProxy>>()
  limitHeaders(HEADERS_MAX_BYTES)
  const server = serve({
    port: Number(port),
    hostname: host,
    idleTimeout: IDLE_TIMEOUT_S,
    fetch: async (request, self) => (await ready)(request, self.requestIP(request)?.address ?? ''),
  })
  const log = (line: string) => void process.stderr.write(`${line}\n`)
  drainOnSignal(server, SETTLEMENT_MS + timeoutMs, log)
  const publicOrigin = given ?? `http://${isIP(host) === 6 ? `[${host}]` : host}:${server.port}`
  isReady(
    createSellProxy({
      purser,
      origin,
      prices,
      publicOrigin,
      timeoutMs,
      fetch,
      log,
    }),
  )
  try {
    await registerPrices(purser, publicOrigin, prices)
  } catch (error) {
    server.stop(true)
    throw error
  }
  process.stdout.write(`listening on port ${server.port}, selling ${origin} at ${publicOrigin}\n`)
} catch (error) {
  const isOurs = [UsageError, PriceError, PathError, ConfigError, PurserError].some(
    (kind) => error instanceof kind,
  )
  const { message } = error as Error
  process.stderr.write(isOurs ? `${message}\n${USAGE}\n` : `${message}\n`)
  process.exitCode = 78
}
