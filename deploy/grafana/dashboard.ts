/** Writes the Grafana dashboard: `bun deploy/grafana/dashboard.ts > deploy/grafana/purser.json`. */

/**
 * Describes a panel of the Grafana dashboard: its title, the unit of its axis, and its queries with the legend of each
 * series.
 */
type Panel = { title: string; unit: string; queries: [query: string, legend: string][] }

const RATE = '[$__rate_interval]'
const quantile = (share: number, metric: string, by: string): string =>
  `histogram_quantile(${share}, sum by (le, ${by}) (rate(${metric}_bucket${RATE})))`

export const PANELS: readonly Panel[] = [
  {
    title: 'Requests by status',
    unit: 'reqps',
    queries: [
      [`sum by (status) (rate(purser_http_request_duration_seconds_count${RATE}))`, '{{status}}'],
    ],
  },
  {
    title: 'Request latency, 99 of 100, by route',
    unit: 's',
    queries: [[quantile(0.99, 'purser_http_request_duration_seconds', 'route'), '{{route}}']],
  },
  {
    title: 'Jobs that wait',
    unit: 'short',
    queries: [['max by (task) (purser_jobs{state="ready"})', '{{task}}']],
  },
  {
    title: 'Age of the oldest due job',
    unit: 's',
    queries: [['max by (task) (purser_jobs_oldest_due_seconds)', '{{task}}']],
  },
  {
    title: 'Jobs by outcome',
    unit: 'ops',
    queries: [
      [`sum by (task, outcome) (rate(purser_jobs_ended_total${RATE}))`, '{{task}} {{outcome}}'],
    ],
  },
  {
    title: 'Job lateness, 99 of 100',
    unit: 's',
    queries: [[quantile(0.99, 'purser_job_lateness_seconds', 'task'), '{{task}}']],
  },
  {
    title: 'Job duration, 99 of 100',
    unit: 's',
    queries: [[quantile(0.99, 'purser_job_duration_seconds', 'task'), '{{task}}']],
  },
  {
    title: 'Living pools',
    unit: 'short',
    queries: [['max by (pool) (purser_pools)', '{{pool}}']],
  },
  {
    title: 'Delay of event loops, longest of ten seconds',
    unit: 's',
    queries: [
      ['max by (part) (purser_event_loop_delay_seconds)', '{{part}}'],
      ['max(purser_pools_silent)', 'pools that stand still'],
    ],
  },
  {
    title: 'SMTP connections',
    unit: 'short',
    queries: [['purser_smtp_connections', '{{process}}']],
  },
  {
    title: 'SMTP messages and refusals',
    unit: 'ops',
    queries: [
      [`sum(rate(purser_smtp_messages_accepted_total${RATE}))`, 'accepted'],
      [`sum by (reply) (rate(purser_smtp_refusals_total${RATE}))`, '{{reply}}'],
    ],
  },
  {
    title: 'Spool',
    unit: 'short',
    queries: [
      ['purser_spool_mails', 'mails {{process}}'],
      ['purser_spool_oldest_seconds', 'seconds {{process}}'],
    ],
  },
  {
    title: 'Mail and webhooks not at their end',
    unit: 'short',
    queries: [
      ['max(purser_outbound_mails_pending)', 'mail'],
      ['max(purser_webhook_deliveries_pending)', 'webhooks'],
    ],
  },
  {
    title: 'Payments',
    unit: 'short',
    queries: [
      ['max(purser_payments_verified)', 'on their way'],
      ['max(purser_payments_unfinalized)', 'not final'],
      ['max(purser_payments_oldest_verified_seconds)', 'oldest, seconds'],
    ],
  },
  {
    title: 'Settlements and gas today',
    unit: 'short',
    queries: [
      ['max(purser_settlements_today)', 'settlements'],
      ['max(purser_settlement_gas_today)', 'gas'],
      ['max(purser_settlement_budget_used_ratio)', 'highest share of a limit'],
    ],
  },
  {
    title: 'Open transactions by gas wallet',
    unit: 'short',
    queries: [
      ['max by (wallet) (purser_gas_wallet_open_transactions)', '{{wallet}}'],
      ['max(purser_chain_transactions_open)', 'all'],
    ],
  },
  {
    title: 'Ether of the gas wallets',
    unit: 'short',
    queries: [['min by (wallet) (purser_gas_wallet_balance_ether)', '{{wallet}}']],
  },
  {
    title: 'Answers of each RPC',
    unit: 'reqps',
    queries: [
      [`sum by (rpc, outcome) (rate(purser_rpc_answers_total${RATE}))`, '{{rpc}} {{outcome}}'],
      ['max by (rpc) (purser_rpc_node_up)', '{{rpc}} is up'],
    ],
  },
  {
    title: 'Gas by project today',
    unit: 'short',
    queries: [
      ['max by (project) (purser_project_gas_today)', '{{project}}'],
      ['max by (project) (purser_project_purse_gas_today)', '{{project}} purse'],
    ],
  },
  {
    title: 'Connections to the database',
    unit: 'short',
    queries: [['purser_database_connections', '{{instance}} {{state}}']],
  },
  {
    title: 'Object store, 99 of 100',
    unit: 's',
    queries: [[quantile(0.99, 'purser_blob_request_seconds', 'operation'), '{{operation}}']],
  },
  {
    title: 'Objects to be removed',
    unit: 'short',
    queries: [
      ['max(purser_blobs_waiting)', 'objects'],
      ['max(purser_blobs_oldest_due_seconds)', 'seconds overdue'],
    ],
  },
  {
    title: 'Requests that wait for events',
    unit: 'short',
    queries: [['purser_event_readers', '{{instance}}']],
  },
]

const WIDTH = 12
const HEIGHT = 8

/** Returns the dashboard in Grafana's JSON model, schema version 39. */
export const dashboard = () => ({
  title: 'Purser',
  uid: 'purser',
  schemaVersion: 39,
  refresh: '30s',
  time: { from: 'now-3h', to: 'now' },
  templating: {
    list: [{ name: 'source', label: 'Data source', type: 'datasource', query: 'prometheus' }],
  },
  panels: PANELS.map(({ title, unit, queries }, n) => ({
    id: n + 1,
    title,
    type: 'timeseries',
    datasource: { type: 'prometheus', uid: '$source' },
    gridPos: {
      x: (n % 2) * WIDTH,
      y: Math.floor(n / 2) * HEIGHT,
      w: WIDTH,
      h: HEIGHT,
    },
    fieldConfig: { defaults: { unit }, overrides: [] },
    targets: queries.map(([expr, legendFormat], at) => ({
      refId: String.fromCharCode(65 + at),
      expr,
      legendFormat,
    })),
  })),
})

if (import.meta.main) process.stdout.write(`${JSON.stringify(dashboard(), null, 2)}\n`)
