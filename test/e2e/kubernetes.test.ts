/**
 * Checks the files in deploy/kubernetes with the schemas of Kubernetes, KEDA and CloudNativePG. No test runs a
 * Kubernetes cluster.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { createClientAddress } from '../../api/http/limits/clientAddress.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { type Part, readBy, SECRETS_OF, type Secret } from '../../shared/config/secrets.ts'
import { POOLS, RUNNER_NAMES, type RunnerName, TASK_POOL } from '../../shared/tasks.ts'
import { RUNNER_CONNECTIONS } from '../../workers/queue/runnerConnections.ts'

const ROOT = join(import.meta.dir, '../..')
const FOLDER = join(ROOT, 'deploy/kubernetes')
const files = readdirSync(FOLDER).filter((name) => name !== 'kustomization.yaml')

type Document = any
const read = (name: string): Document[] =>
  parseAllDocuments(readFileSync(join(FOLDER, name), 'utf8')).map((one) => one.toJS())
const documents = files.flatMap((name) => read(name).map((document) => ({ name, document })))
const ofKind = (...kinds: string[]) =>
  documents.map(({ document }) => document).filter(({ kind }) => kinds.includes(kind))

const PACKAGES: Record<string, string> = {
  'keda.sh/v1alpha1': '@kubernetes-models/keda/keda.sh/v1alpha1',
  'postgresql.cnpg.io/v1': '@kubernetes-models/cloudnative-pg/postgresql.cnpg.io/v1',
}

async function validate(document: Document): Promise<void> {
  const { apiVersion, kind } = document
  const folder = PACKAGES[apiVersion] ?? `kubernetes-models/${apiVersion}`
  const { [kind]: Model } = await import(`${folder}/${kind}`)
  new Model(document).validate()
}

test('the file kustomization.yaml lists every file of deploy/kubernetes', () => {
  const { resources } = parse(readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8'))
  expect(resources.toSorted()).toEqual(files.toSorted())
})

test.each(
  documents.map(({ name, document }) => [name, document.kind, document.metadata.name, document]),
)(
  'in the file %s the Kubernetes object %s %s is valid',
  async (_name, _kind, _object, document) => {
    await validate(document)
  },
)

test('the Kubernetes schemas refuse an invalid document', async () => {
  for (const spoil of [
    (pod: Document) => (pod.containers[0].ports[0].containerPort = 'http'),
    (pod: Document) => delete pod.containers[0].name,
    (pod: Document) => (pod.securityContext.runAsNonRoot = 'yes'),
  ]) {
    const wrong = structuredClone(ofKind('Deployment')[0])
    spoil(wrong.spec.template.spec)
    await expect(validate(wrong)).rejects.toThrow()
  }
})

const workloads: Document[] = ofKind('Deployment', 'StatefulSet', 'Job')
const partOf = (workload: Document): string =>
  workload.spec.template.metadata.labels['app.kubernetes.io/component']

test('the API and the SMTP listener trust the client address that the ingress reports, so that one client cannot use up everyone’s rate limits', () => {
  const [{ data }] = ofKind('ConfigMap')
  const addressOf = createClientAddress(parseConfig(data, []).trustedProxies)
  // The pods of an ingress controller have private addresses, which the service must trust as proxies.
  expect(addressOf('10.244.1.7', '203.0.113.7')).toBe('203.0.113.7')
})

test('each part of the service has a workload in deploy/kubernetes', () => {
  expect(workloads.map(partOf).toSorted()).toEqual(Object.keys(SECRETS_OF).toSorted())
})

describe.each(workloads.map((workload) => [partOf(workload), workload]))(
  'the Kubernetes workload %s is configured safely',
  (part, workload) => {
    const pod = workload.spec.template.spec
    const [container] = pod.containers
    const secrets = container.env
      .map(({ name }: { name: string }) => name)
      .filter((name: string) => !['DATABASE_URL', 'METRICS_TOKEN'].includes(name))

    test('a workload gets only the secrets that it needs, each as a reference to a Kubernetes secret', () => {
      expect(secrets.toSorted()).toEqual([...readBy(part as Part)].toSorted())
      for (const { name, value, valueFrom } of container.env) {
        expect([name, value]).toEqual([name, undefined])
        const { secretKeyRef } = valueFrom
        if (name !== 'DATABASE_URL') expect(secretKeyRef.key).toBe(name)
      }
    })

    test('a workload runs an existing program, and the program accepts the settings of the workload’s ConfigMap', () => {
      expect(existsSync(join(ROOT, container.args[0]))).toBe(true)
      if (RUNNER_NAMES.includes(part as RunnerName))
        expect(container.args.slice(1)).toEqual(['--pool', part])
      const settings = ofKind('ConfigMap')[0].data
      const key = (id: string) => `${id}:${Buffer.alloc(32, id).toString('base64')}`
      const given = {
        DATABASE_URL: 'postgres://purser@db/purser',
        MASTER_KEYS: key('a'),
        RECEIPT_SIGNING_KEYS: key('a'),
        SETTLEMENT_KEYS: `0x${'17'.repeat(32)}`,
        RPC_URL: 'https://rpc.example.com',
        SMTP_RELAY_URL: 'direct',
      }
      const own = SECRETS_OF[part as keyof typeof SECRETS_OF]
      const names: Secret[] = [...own]
      const config = parseConfig(
        {
          ...settings,
          ...Object.fromEntries(
            Object.entries(given).filter(
              ([name]) => name === 'DATABASE_URL' || names.includes(name as Secret),
            ),
          ),
        },
        own,
      )
      expect(config.health).toEqual({ host: '0.0.0.0', port: 9000 })
    })

    test('a workload runs as an unprivileged user, with a root file system that is read-only', () => {
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      expect(pod.automountServiceAccountToken).toBe(false)
      expect(container.securityContext).toEqual({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
      })
      const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
      const { runAsUser, runAsGroup } = pod.securityContext
      expect(dockerfile).toContain(`USER ${runAsUser}:${runAsGroup}`)
      expect(container.resources.limits.memory).toBeDefined()
    })

    test('a workload has three probes (startup, readiness, liveness), and only one of its pods may be stopped at a time', () => {
      // A Kubernetes Job needs no probe, because a Job ends by itself.
      if (part === 'migrate') return expect(workload.kind).toBe('Job')
      for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
        const { port } = container[probe].httpGet
        expect(container.ports.map(({ name }: { name: string }) => name)).toContain(port)
      }
      const selector = { matchLabels: workload.spec.template.metadata.labels }
      expect(workload.spec.selector).toEqual(selector)
      const budgets = ofKind('PodDisruptionBudget').map(({ spec }) => spec)
      expect(budgets).toContainEqual({ maxUnavailable: 1, selector })
    })
  },
)

test('before a pod behind a Kubernetes Service stops, it waits until no new connections are routed to it', () => {
  const behind = ofKind('Service').map(({ spec }) => JSON.stringify(spec.selector))
  const routed = workloads.filter(({ spec }) =>
    behind.includes(JSON.stringify(spec.template.metadata.labels)),
  )
  expect(routed.map(partOf).toSorted()).toEqual(['api', 'smtp'])
  for (const { spec } of routed) {
    const { containers, terminationGracePeriodSeconds } = spec.template.spec
    const [command, seconds] = containers[0].lifecycle?.preStop.exec.command ?? []
    expect(command).toBe('sleep')
    // When the service stops, it may need 20 seconds to finish its work (shared/process/service.ts). Therefore the
    // pause before the stop must be at least 20 seconds shorter than the grace period.
    expect(Number(seconds)).toBeWithin(1, terminationGracePeriodSeconds - 20)
  }
})

/** The worker pool `mail` consists of two runners (groups of worker jobs) (workers/runners.ts). */
const OUTBOUND_TASKS = [
  'send_mail',
  'announce_approval',
  'expire_approval',
  'mail_sign_in_link',
  'examine_mail',
]

test.each([...RUNNER_NAMES])(
  'the Kubernetes autoscaler KEDA scales the worker process %s by the age of the oldest job that waits for this process',
  (runner) => {
    const scaled = ofKind('ScaledObject').filter(
      ({ spec }) => spec.scaleTargetRef.name === `purser-${runner}`,
    )
    expect(scaled).toHaveLength(1)
    const [{ metadata }] = scaled[0].spec.triggers
    const [, tasks = ''] =
      /^max\(purser_jobs_oldest_due_seconds\{task=~"([a-z_|]+)"\}\)$/.exec(metadata.query) ?? []
    const pool = Object.entries(POOLS).find(([, runners]) =>
      (runners as readonly string[]).includes(runner),
    )![0]
    const ofPool = Object.keys(TASK_POOL).filter((task) => TASK_POOL[task as never] === pool)
    const ofRunner = (task: string) => OUTBOUND_TASKS.includes(task) === (runner === 'outbound')
    const wanted = pool === 'mail' ? ofPool.filter(ofRunner) : ofPool
    expect(tasks.split('|').toSorted()).toEqual(wanted.toSorted())
  },
)

test('the network policy lets every worker process except inbound reach the internet, and lets none of them reach the private network', () => {
  const policy = ofKind('NetworkPolicy').find(({ metadata }) => metadata.name === 'purser-internet')
  const [{ values }] = policy.spec.podSelector.matchExpressions
  // The runner `inbound` (a group of worker jobs) is missing in the network policy, because it sends requests only to
  // name servers.
  expect(values.toSorted()).toEqual(RUNNER_NAMES.filter((name) => name !== 'inbound').toSorted())
  const [{ to }] = policy.spec.egress
  expect(to[0].ipBlock.except).toContain('10.0.0.0/8')
  expect(to[0].ipBlock.except).toContain('169.254.0.0/16')
})

/**
 * Sets the number of database connections that an API process opens besides its pool, for two listeners and for
 * exports.
 */
const API_CONNECTIONS = 10
const SMTP_CONNECTIONS = 8
/**
 * Sets the number of database connections that each worker process opens for its registration, housekeeping, metrics,
 * keys and objects.
 */
const WORKER_CONNECTIONS = 6
/**
 * Sets the number of additional database connections of two runners (groups of worker jobs). One of them reads MTA-STS
 * policies, and the other watches the chain.
 */
const FURTHER: Partial<Record<RunnerName, number>> = { outbound: 2, payments: 8 }

test('all processes together leave a tenth of the database connections free, even when KEDA starts the maximum number of pods', () => {
  const most = (name: string): number =>
    ofKind('ScaledObject').find(({ spec }) => spec.scaleTargetRef.name === name)?.spec
      .maxReplicaCount ?? workloads.find(({ metadata }) => metadata.name === name)!.spec.replicas
  const api = (most('purser-api') + 1) * (parseConfig({}, []).databasePoolSize + API_CONNECTIONS)
  const smtp = most('purser-smtp') * SMTP_CONNECTIONS
  const workers = RUNNER_NAMES.map(
    (name) =>
      most(`purser-${name}`) *
      (RUNNER_CONNECTIONS[name] + WORKER_CONNECTIONS + (FURTHER[name] ?? 0)),
  )
  const sum = [api, smtp, ...workers].reduce((one, other) => one + other)
  const [{ spec }] = ofKind('Cluster')
  expect(sum).toBeLessThan(Number(spec.postgresql.parameters.max_connections) * 0.9)
})

test('a probe that queries the database waits at least five seconds for its response', () => {
  const containers = workloads.flatMap(({ spec }) => spec.template.spec.containers)
  const probes = containers
    .flatMap(({ startupProbe, readinessProbe, livenessProbe }) => [
      ...[startupProbe, readinessProbe, livenessProbe],
    ])
    .filter((probe) => probe?.httpGet?.path.startsWith('/readyz'))
  expect(probes.length).toBeGreaterThan(0)
  for (const { timeoutSeconds } of probes) expect(timeoutSeconds).toBeGreaterThanOrEqual(5)
})
