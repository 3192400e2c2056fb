/**
 * The command `bun run test:cluster` runs the service under load on two PostgreSQL nodes with synchronous replication.
 * The machine of the primary disappears repeatedly. At the end, an audit compares the responses that clients got with
 * the final state of the service.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runChaos } from '../chaos/chaos.ts'
import { startRoughProxy } from '../chaos/harms/roughProxy.ts'
import { reportLines } from '../chaos/report.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { findTools } from './tools.ts'

const write = (line: string) => process.stdout.write(`${line}\n`)
const inSeconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, log: { type: 'string' } },
})
const folder = mkdtempSync(join(tmpdir(), 'purser-cluster-'))
let cluster: Cluster | undefined
try {
  const tools = findTools()
  const report = await runChaos({
    seed: crypto.getRandomValues(new Uint32Array(1))[0]!,
    seconds: Number(values.seconds),
    ...(values.log === undefined ? {} : { logFile: values.log }),
    async startDatabase() {
      const started = await startCluster(tools, folder)
      cluster = started
      const proxy = await startRoughProxy(started.port)
      return {
        url: started.url.replace(`:${started.port}/`, `:${proxy.port}/`),
        directUrl: () => started.url,
        proxy,
        server: null,
        async stop() {
          await proxy[Symbol.asyncDispose]()
          await started.stop()
        },
      }
    },
    harms: {
      async failover() {
        const before = await cluster!.primary()
        const ms = await cluster!.loseThePrimary()
        const after = await cluster!.primary()
        return `the machine of node ${before} vanished; node ${after} took over after ${inSeconds(ms)}`
      },
    },
    onLine: write,
  })
  for (const line of reportLines(report)) write(line)
  process.exitCode = report.findings.length === 0 && report.harms.has('failover') ? 0 : 1
} catch (error) {
  write((error as Error).message)
  process.exitCode = 2
} finally {
  await cluster?.stop()
  rmSync(folder, { recursive: true, force: true })
}
process.exit()
