import { generateKey, keyLookupPrefix } from '../../../shared/apiKey.ts'
import type { Cursor } from '../../../shared/cursor.ts'
import { newProjectId } from '../../../shared/ids.ts'
import type { Retention } from '../../../shared/retention.ts'
import { conditions, holds } from '../../conditions.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { notifyKeysChanged } from '../../events/events.ts'
import { notifyAddressesChanged } from '../../mail/domains/addresses.ts'
import { holdVerifiedDomain } from '../../mail/domains/mailDomains.ts'
import { type Order, pageOrder } from '../../pageStart.ts'
import { queueChecksOfProject } from '../../till/endpoints/endpointChecks.ts'
import { TODAY } from '../../till/settle/settlementBudgets.ts'
import { type Actor, writeAudit } from '../audit.ts'
import { insertProjectKey, revokeProjectKey } from '../keys/keys.ts'
import { type LimitChange, updateLimits } from './projectLimits.ts'
import {
  RETENTION_JSON,
  type RetentionChange,
  retentionJoins,
  updateRetention,
} from './retention.ts'
import { type PolicyChange, type SendPolicyName, updateSendPolicy } from './sendPolicy.ts'

type Purpose = 'SELLER' | 'BUYER'

/** Describes a project as API operations with a platform key return the project. */
export type Project = {
  id: string
  name: string
  /** Holds the display name in From. Null means that the project's name is used. */
  displayName: string | null
  purpose: Purpose
  emailAddress: string
  payTo: string | null
  /**
   * Lists the chain addresses that belong to the project, in lower case. A payment from such an address does not count
   * as income of the project.
   */
  ownAddresses: string[]
  paymentsEnabled: boolean
  sendPolicy: SendPolicyName
  /** Holds the owner's mail address for notifications. Null means that the owner gets no notifications. */
  approverEmail: string | null
  approvalHours: number
  scopes: string[]
  apiKeyPrefix: string
  requestCount: number
  lastUsedAt: Date | null
  /** Counts the stored bytes of the project's mail. */
  storedBytes: number
  /** Holds the project's own limit of stored bytes. Null means that the service's limit on stored bytes applies. */
  storageLimitBytes: number | null
  /**
   * Counts the payments that the service has accepted for settlement for the project in the current UTC day. The field
   * `gasToday` counts the gas that their transactions used. The field `purseGasToday` counts the gas of the calls that
   * the project's purse has signed.
   */
  settlementsToday: number
  gasToday: number
  purseGasToday: number
  /**
   * Holds the project's own limit on the payments that the service accepts for settlement in a UTC day. The field
   * `dailyGas` holds its own limit on gas. Null means that the service's limit applies.
   */
  dailySettlements: number | null
  dailyGas: number | null
  /**
   * Counts the attachment bytes of the project that the service has read in the current UTC day. The field
   * `textSecondsToday` counts the seconds that this took. The fields `dailyTextBytes` and `dailyTextSeconds` hold the
   * project's own limits, and null means that the service's limit applies.
   */
  textBytesToday: number
  textSecondsToday: number
  dailyTextBytes: number | null
  dailyTextSeconds: number | null
  /**
   * Holds the number of days for which the service keeps the project's rows of each retention class. Null means that
   * the service keeps the rows for ever.
   */
  retention: Retention
  createdAt: Date
  /** Holds the row number of the project, which page tokens contain. */
  row: bigint
}

/** Reports that another project has or had an inbox address. The service never gives an address to a second project. */
export class AddressTakenError extends Error {}

/** Reports that the mail domain of an inbox address is not verified. */
export class UnverifiedDomainError extends Error {}

type ProjectRow = {
  id: string
  name: string
  display_name: string | null
  purpose: Purpose
  email_address: string
  pay_to: string | null
  own_addresses: string[]
  payments_enabled: boolean
  send_policy: SendPolicyName
  approver_email: string | null
  approval_hours: number
  scopes: string[]
  lookup_prefix: string
  request_count: string | null
  last_used_at: Date | null
  stored_bytes: string | null
  storage_bytes: string | null
  settlements: string | null
  gas: string | null
  purse_gas: string | null
  daily_settlements: string | null
  daily_gas: string | null
  text_bytes: string | null
  text_ms: string | null
  daily_text_bytes: string | null
  daily_text_seconds: string | null
  retention: Retention
  created_at: Date
  row: string
}

const SELECT_PROJECT = `
  select p.id, p.name, p.display_name, p.purpose, p.email_address, p.pay_to, p.own_addresses, p.payments_enabled, p.created_at, p.row,
         p.send_policy, p.approver_email, p.approval_hours,
         k.scopes, k.lookup_prefix, u.request_count, u.last_used_at, s.bytes as stored_bytes, l.storage_bytes,
         b.settlements, b.gas, g.gas as purse_gas, l.daily_settlements, l.daily_gas,
         a.bytes as text_bytes, a.cpu_ms as text_ms, l.daily_text_bytes, l.daily_text_seconds, ${RETENTION_JSON} as retention
  from projects p
  join api_keys k on k.project_id = p.id and k.revoked_at is null
  left join project_usage u on u.project_id = p.id
  left join project_storage s on s.project_id = p.id
  left join project_limits l on l.project_id = p.id
  left join settlement_budgets b on b.project_id = p.id and b.day = ${TODAY}
  left join purse_gas g on g.project_id = p.id and g.day = ${TODAY}
  left join attachment_reading a on a.project_id = p.id and a.day = ${TODAY}
  ${retentionJoins('p.id')}
  where p.deleted_at is null`

const numberOrNull = (text: string | null): number | null => (text === null ? null : Number(text))

const toProject = (row: ProjectRow): Project => ({
  id: row.id,
  name: row.name,
  displayName: row.display_name,
  purpose: row.purpose,
  emailAddress: row.email_address,
  payTo: row.pay_to,
  ownAddresses: row.own_addresses,
  paymentsEnabled: row.payments_enabled,
  sendPolicy: row.send_policy,
  approverEmail: row.approver_email,
  approvalHours: row.approval_hours,
  scopes: row.scopes,
  apiKeyPrefix: row.lookup_prefix,
  requestCount: Number(row.request_count ?? 0),
  lastUsedAt: row.last_used_at,
  storedBytes: Number(row.stored_bytes ?? 0),
  storageLimitBytes: numberOrNull(row.storage_bytes),
  settlementsToday: Number(row.settlements ?? 0),
  gasToday: Number(row.gas ?? 0),
  purseGasToday: Number(row.purse_gas ?? 0),
  dailySettlements: numberOrNull(row.daily_settlements),
  dailyGas: numberOrNull(row.daily_gas),
  textBytesToday: Number(row.text_bytes ?? 0),
  textSecondsToday: Math.ceil(Number(row.text_ms ?? 0) / 1000),
  dailyTextBytes: numberOrNull(row.daily_text_bytes),
  dailyTextSeconds: numberOrNull(row.daily_text_seconds),
  retention: row.retention,
  createdAt: row.created_at,
  row: BigInt(row.row),
})

export type NewProject = {
  name: string
  purpose: Purpose
  /** Holds the inbox address, in lower case. */
  emailAddress: string
  /**
   * Holds the verified domain of the inbox address. If it is absent or null, the address is in the service's own mail
   * domain.
   */
  emailDomain?: string | null
  scopes: readonly string[]
  payTo?: string | null
  paymentsEnabled?: boolean
  /** Holds the API key of the project. If `key` is absent, the service creates a new API key. */
  key?: string
}

/**
 * Creates a project with its inbox and its API key.
 * @param audit records the creation in the same transaction. By default, the caller records it.
 * @returns the project and its API key. The database holds only the hash of the API key.
 * @throws {AddressTakenError} if another project has or had the address. @throws {UnverifiedDomainError} if the mail
 * domain is not verified.
 */
export async function createProject(
  pool: Pool,
  input: NewProject,
  audit: (db: Queryable, id: string) => Promise<void> = async () => {},
): Promise<{ project: Project; rawKey: string }> {
  const id = newProjectId()
  const rawKey = input.key ?? generateKey('project')
  const project = await transaction(pool, async (db) => {
    const { emailDomain = null } = input
    if (emailDomain !== null && !(await holdVerifiedDomain(db, emailDomain))) {
      throw new UnverifiedDomainError()
    }
    const inserted = await db.query(
      `insert into projects (id, name, purpose, email_address, pay_to, payments_enabled)
       values ($1, $2, $3, $4, $5, $6) on conflict (email_address) do nothing`,
      [
        id,
        input.name,
        input.purpose,
        input.emailAddress,
        input.payTo ?? null,
        input.paymentsEnabled ?? false,
      ],
    )
    if (inserted.rowCount === 0) throw new AddressTakenError()
    await insertProjectKey(db, { key: rawKey, projectId: id, scopes: input.scopes })
    await audit(db, id)
    await notifyAddressesChanged(db, input.emailAddress)
    return findProject(db, id)
  })
  return { project: project!, rawKey }
}

/** Finds a project by id. @returns null if the project does not exist or is deleted. */
export async function findProject(db: Queryable, id: string): Promise<Project | null> {
  const { rows } = await db.query<ProjectRow>({
    name: 'find-project',
    text: `${SELECT_PROJECT} and p.id = $1`,
    values: [id],
  })
  return rows[0] === undefined ? null : toProject(rows[0])
}

export type ProjectFilter = {
  /** Selects only the projects with the given ids. Null means that the filter selects all projects. */
  only: readonly string[] | null
  /** Selects projects that have the given text in the name or in the inbox address. */
  text?: string
  paymentsEnabled?: boolean
  after?: Date
  before?: Date
}

/** Lists projects that are not deleted in the requested order, with at most `limit` projects after the cursor. */
export async function listProjects(
  db: Queryable,
  filter: ProjectFilter & { limit: number; cursor: Cursor | null; order?: Order },
): Promise<Project[]> {
  const { before, direction, start } = pageOrder(filter.order ?? 'newest', filter.cursor)
  const values: unknown[] = [...start, filter.limit, filter.only]
  const tests = conditions(values, [
    [holds(`concat_ws(E'\\n', p.name, p.email_address)`), filter.text],
    ['p.payments_enabled = ?', filter.paymentsEnabled],
    ['p.created_at >= ?', filter.after],
    ['p.created_at < ?', filter.before],
  ])
  const { rows } = await db.query<ProjectRow>(
    `${SELECT_PROJECT} and (p.created_at, p.row) ${before} ($1::timestamptz, $2::bigint)
       and ($4::text[] is null or p.id = any ($4)) ${tests}
     order by p.created_at ${direction}, p.row ${direction} limit $3`,
    values,
  )
  return rows.map(toProject)
}

export type ProjectChange = PolicyChange & {
  name?: string
  /** Holds the display name in From. Null means that the project's name is used. */
  displayName?: string | null
  addScopes?: readonly string[]
  removeScopes?: readonly string[]
  payTo?: string | null
  ownAddresses?: readonly string[]
  paymentsEnabled?: boolean
  limits?: LimitChange
  retention?: RetentionChange
}

/**
 * Describes a change of a project for its audit log, which the holder of a project key can read. For a changed name or
 * display name, the log holds only the name of the field, because the value may be long.
 */
const describeChange = ({ name, displayName, retention, limits, ...rest }: ProjectChange): string =>
  [
    ...(name === undefined ? [] : ['name']),
    ...(displayName === undefined ? [] : ['displayName']),
    ...Object.entries({ ...rest, ...limits })
      .filter(([, value]) => value !== undefined)
      .map(([field, value]) => `${field} ${Array.isArray(value) ? value.join(' ') : value}`),
  ].join(', ')

/**
 * Changes a project and writes the change into the project's audit log. @returns null if the project does not exist or
 * is deleted.
 */
export async function updateProject(
  pool: Pool,
  id: string,
  change: ProjectChange,
  actor: Actor,
): Promise<Project | null> {
  return transaction(pool, async (db) => {
    const hasNewPayTo = await isNewPayTo(db, id, change.payTo ?? null)
    const { rowCount } = await db.query(
      `update projects set
         name = coalesce($2, name),
         pay_to = case when $3 then $4 else pay_to end,
         payments_enabled = coalesce($5, payments_enabled),
         display_name = case when $6 then $7 else display_name end,
         own_addresses = coalesce($8, own_addresses)
       where id = $1 and deleted_at is null`,
      [
        id,
        change.name ?? null,
        change.payTo !== undefined,
        change.payTo ?? null,
        change.paymentsEnabled ?? null,
        change.displayName !== undefined,
        change.displayName ?? null,
        change.ownAddresses?.map((address) => address.toLowerCase()) ?? null,
      ],
    )
    if (rowCount === 0) return null
    if (hasNewPayTo) await queueChecksOfProject(db, id)
    await updateSendPolicy(db, id, change)
    if (change.limits !== undefined) await updateLimits(db, id, change.limits)
    if (change.retention !== undefined) {
      await updateRetention(db, id, change.retention, actor)
    }
    const detail = describeChange(change)
    if (detail !== '') {
      await writeAudit(db, actor, {
        action: 'project.update',
        subject: id,
        detail,
        outcome: 'ok',
      })
    }
    await db.query(
      `update api_keys set scopes = array(
         select distinct s from unnest(scopes || $2::text[]) s where s <> all ($3::text[]) order by s)
       where project_id = $1 and revoked_at is null`,
      [id, change.addScopes ?? [], change.removeScopes ?? []],
    )
    if ((change.removeScopes ?? []).length > 0) await notifyKeysChanged(db, id)
    return findProject(db, id)
  })
}

async function isNewPayTo(db: Queryable, id: string, payTo: string | null): Promise<boolean> {
  if (payTo === null) return false
  const { rowCount } = await db.query(
    `select from projects where id = $1 and lower(pay_to) is distinct from lower($2) for no key update`,
    [id, payTo],
  )
  return rowCount === 1
}

/**
 * Replaces a project's API key and revokes the old one. The project's audit log records the actor and the prefix of the
 * new key. @returns null if the project does not exist or is deleted.
 */
export async function rotateProjectKey(
  pool: Pool,
  id: string,
  actor: Actor,
): Promise<{ rawKey: string; apiKeyPrefix: string } | null> {
  const rawKey = generateKey('project')
  return transaction(pool, async (db) => {
    const locked = await db.query(
      'select from projects where id = $1 and deleted_at is null for no key update',
      [id],
    )
    if (locked.rowCount === 0) return null
    const { scopes } = (await findProject(db, id))!
    await revokeProjectKey(db, id)
    await insertProjectKey(db, { key: rawKey, projectId: id, scopes })
    const apiKeyPrefix = keyLookupPrefix(rawKey)
    await writeAudit(db, actor, {
      action: 'project.rotate_key',
      subject: id,
      detail: apiKeyPrefix,
      outcome: 'ok',
    })
    return { rawKey, apiKeyPrefix }
  })
}
