/**
 * Runs the outside systems that stay the same when an installation is restored: the chain, the smarthost and the
 * webhook receiver.
 */

import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAbi, parseEventLogs } from 'viem'
import { type DevnetClient, devnetClient } from '../../../workers/devnet/contracts.ts'
import { type Devnet, startDevnet } from '../../../workers/devnet/devnet.ts'
import { type Receiver, startReceiver } from '../../support/events/receiver.ts'
import { startNameServer } from '../../support/mail/nameServer.ts'
import { type Sink, startSink } from '../../support/mail/sink.ts'
import { gasWallet } from '../../support/till/devnetPayment.ts'
import { CHALLENGE } from '../../support/till/headers/challenge.ts'
import { type RpcProxy, startRpcProxy } from '../../support/till/rpcProxy.ts'
import { SEPOLIA } from '../../support/till/till.ts'

const EVENTS = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])
const RESOURCE_PATH = '/report'

/**
 * Describes a gate, with which the test stops the traffic of a server. A closed gate holds back requests and messages,
 * and an open gate lets them pass.
 */
type Gate = { open(): void; close(): void; pass(): Promise<void>; waiting: number }

export type Surroundings = AsyncDisposable & {
  folder: string
  devnet: Devnet
  client: DevnetClient
  rpc: RpcProxy
  sink: Sink
  receiver: Receiver
  nameServer: string
  /**
   * The gate `mail` holds back the replies of the smarthost, and the gate `webhooks` holds back the responses of the
   * webhook receiver.
   */
  gates: { mail: Gate; webhooks: Gate }
  resource: string
  /** Counts the transactions of the gas wallet that are not in a block yet. */
  unmined(): Promise<number>
  /** Maps the nonce of a payment authorization to the hashes of the transactions that used it. */
  usedOnChain(): Promise<Map<string, string[]>>
  /**
   * Counts for each Idempotency-Key of a webhook how many requests and how many different bodies it had.
   */
  webhooks(): Map<string, { count: number; bodies: number }>
  /** Maps each event type and payment to the Idempotency-Keys of the webhooks that announced the payment. */
  announcements(): Map<string, Set<string>>
  /**
   * Returns for each Message-ID how many copies the smarthost accepted, and how many different contents they had.
   */
  mails(): Map<string, { count: number; contents: number }>
}

export async function startSurroundings(): Promise<Surroundings> {
  const folder = mkdtempSync(join(tmpdir(), 'purser-restore-'))
  const log = { info() {}, warn() {} }
  const devnet = await startDevnet({ port: 0, stateFile: join(folder, 'chain.state'), log })
  const client = devnetClient(devnet.rpcUrl)
  const rpc = startRpcProxy(devnet.rpcUrl)
  const names = await startNameServer([])
  const gates = { mail: newGate(), webhooks: newGate() }
  const sink = await startSink()
  sink.refuseData = async () => {
    await gates.mail.pass()
    return null
  }
  const receiver = await startReceiver(async (request, response) => {
    if (request.path === RESOURCE_PATH) {
      response.writeHead(402).end(CHALLENGE)
      return
    }
    await gates.webhooks.pass()
    response.end('ok')
  })
  return {
    folder,
    devnet,
    client,
    rpc,
    sink,
    receiver,
    nameServer: names.address,
    gates,
    resource: `http://127.0.0.1:${receiver.port}${RESOURCE_PATH}`,
    async unmined() {
      const { address } = gasWallet
      const count = (blockTag: 'pending' | 'latest') =>
        client.getTransactionCount({ address, blockTag })
      return (await count('pending')) - (await count('latest'))
    },
    async usedOnChain() {
      const raw = await client.getLogs({ address: SEPOLIA.usdcAddress, fromBlock: 0n })
      const used = new Map<string, string[]>()
      for (const log of parseEventLogs({ abi: EVENTS, logs: raw })) {
        if (log.eventName !== 'AuthorizationUsed') continue
        const nonce = log.args.nonce.toLowerCase()
        used.set(nonce, [...(used.get(nonce) ?? []), log.transactionHash])
      }
      return used
    },
    webhooks: () =>
      tally(
        receiver.requests
          .filter(({ path }) => path !== RESOURCE_PATH)
          .map(({ headers, body }) => [String(headers['x-service-idempotency-key']), body]),
        ({ count, different }) => ({ count, bodies: different }),
      ),
    announcements() {
      const keys = new Map<string, Set<string>>()
      for (const { path, headers, body } of receiver.requests) {
        if (path === RESOURCE_PATH) continue
        const told = JSON.parse(body.toString('utf8'))
        const paymentId = told.body?.paymentId ?? told.data?.paymentId
        if (paymentId === undefined) continue
        const name = `${headers['x-service-event']} ${paymentId}`
        const key = String(headers['x-service-idempotency-key'])
        keys.set(name, (keys.get(name) ?? new Set()).add(key))
      }
      return keys
    },
    mails: () =>
      tally(
        sink.mails.map(({ email, raw }) => [email.messageId ?? '', raw]),
        ({ count, different }) => ({ count, contents: different }),
      ),
    async [Symbol.asyncDispose]() {
      gates.mail.open()
      gates.webhooks.open()
      await Promise.all([sink[Symbol.asyncDispose](), receiver[Symbol.asyncDispose]()])
      await names[Symbol.asyncDispose]()
      await rpc.stop()
      await devnet.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function newGate(): Gate {
  let closed: PromiseWithResolvers<void> | null = null
  const gate: Gate = {
    waiting: 0,
    close() {
      closed ??= Promise.withResolvers<void>()
    },
    open() {
      closed?.resolve()
      closed = null
    },
    async pass() {
      if (closed === null) return
      gate.waiting++
      await closed.promise
      gate.waiting--
    },
  }
  return gate
}

function tally<Counted>(
  pairs: readonly (readonly [string, Buffer | string])[],
  toCounted: (found: { count: number; different: number }) => Counted,
): Map<string, Counted> {
  const hash = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')
  const groups = Map.groupBy(pairs, ([key]) => key)
  return new Map(
    [...groups].map(([key, group]) => {
      const different = new Set(group.map(([, bytes]) => hash(bytes))).size
      return [key, toCounted({ count: group.length, different })]
    }),
  )
}
